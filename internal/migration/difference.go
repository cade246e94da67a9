package migration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/sqllex"
)

// change is a statement of a migration, without its semicolon.
type change struct {
	sql     string
	warning string // possible loss of data or long lock; "": none
}

// Warnings of changes.
const (
	warnLoss    = "destroys data"
	warnRewrite = "rewrites the table, which nobody can read or write meanwhile"
	warnScan    = "reads the whole table, which nobody can write meanwhile, and fails if a row violates it"
	warnIndex   = "reads the whole table, which nobody can write meanwhile"
	warnRows    = "fails if the table has rows"
	warnRefresh = "runs the query of the view"
	warnRename  = "rows with the former value get the new one"
)

// difference is the statements that turn one schema into another.
type difference struct {
	values     []change // new values of enums, which no statement of their transaction can use
	changes    []change
	extensions []change // dropped, which is not possible in a transaction
	unresolved []string // differences that no statement removes
}

func (d difference) empty() bool { return len(d.values)+len(d.changes)+len(d.extensions) == 0 }

// Kinds of objects.
var (
	// parts disappear with the object that they belong to.
	parts = []string{"INDEX", "CONSTRAINT", "CHECK CONSTRAINT", "FK CONSTRAINT", "TRIGGER", "POLICY", "RULE", "DEFAULT",
		"ROW SECURITY", "COMMENT", "ACL", "STATISTICS", "INDEX ATTACH", "TABLE ATTACH", "SEQUENCE OWNED BY",
		"PUBLICATION TABLE", "SECURITY LABEL"}

	// users may use an object that goes, and are created again after it.
	users = append([]string{"VIEW", "MATERIALIZED VIEW", "FUNCTION", "PROCEDURE", "AGGREGATE"}, parts...)

	// last are dropped after everything that may use them has changed.
	last = []string{"TYPE", "DOMAIN", "FUNCTION", "PROCEDURE", "AGGREGATE", "SEQUENCE", "SCHEMA", "COLLATION",
		"OPERATOR", "OPERATOR CLASS", "OPERATOR FAMILY", "TEXT SEARCH CONFIGURATION", "TEXT SEARCH DICTIONARY"}

	// afterIndexes follow the indexes and their constraints in a dump.
	afterIndexes = []string{"INDEX ATTACH", "STATISTICS", "RULE", "TRIGGER", "FK CONSTRAINT", "ROW SECURITY", "POLICY",
		"PUBLICATION"}
)

// comparison is a comparison of two schemas.
type comparison struct {
	from, to []pgdump.Entry
	old, new map[string]*pgdump.Entry // by key

	dropped map[string]bool // entries of from that are dropped
	implied map[string]bool // dropped together with another entry
	altered map[string][]change

	difference
}

// compare returns the statements that turn the schema from into the schema to. Both are the entries
// of a dump, see [relevant].
func compare(from, to []pgdump.Entry) difference {
	c := &comparison{
		from: from, to: to, old: byKey(from), new: byKey(to), dropped: map[string]bool{}, implied: map[string]bool{},
		altered: map[string][]change{},
	}

	for i := range from {
		c.classify(&from[i])
	}

	c.deferPartitions()
	c.spread()
	c.drop()
	c.create()
	c.dropLast()

	return c.difference
}

// key identifies an entry. Tags of different kinds of objects may be equal.
func key(e *pgdump.Entry) string { return e.Desc + "\n" + e.Namespace + "\n" + e.Tag }

// byKey returns entries by their key. Of operators with one name only the first is found.
func byKey(entries []pgdump.Entry) map[string]*pgdump.Entry {
	all := map[string]*pgdump.Entry{}
	for i := range entries {
		if k := key(&entries[i]); all[k] == nil {
			all[k] = &entries[i]
		}
	}

	return all
}

// classify decides whether an entry of from is kept, altered, or dropped.
func (c *comparison) classify(old *pgdump.Entry) {
	k := key(old)
	now := c.new[k]
	switch {
	case now == nil:
		c.dropped[k] = true
	case now.Definition == old.Definition:
	case old.Desc == "TABLE":
		c.classifyTable(old, now)
	case isEnum(old.Definition) && isEnum(now.Definition):
		c.classifyEnum(old, now)
	case old.Desc == "DOMAIN":
		changes, ok := alterDomain(parseDomain(trimmed(old.Definition)), parseDomain(trimmed(now.Definition)))
		c.altered[k], c.dropped[k] = changes, !ok
	case old.Desc == "ACL", old.Desc == "DEFAULT ACL":
		c.altered[k] = regrant(old.Definition, now.Definition)
	case old.Desc == "COMMENT", old.Desc == "DEFAULT", old.Desc == "SEQUENCE OWNED BY":
		c.altered[k] = statements(now)
	case old.Desc == "SEQUENCE" && isSameSequence(old, now):
		c.altered[k] = []change{{sql: alterSequence(now)}}
	case replaceable(old, now):
		c.altered[k] = []change{{
			sql: "CREATE OR REPLACE" + strings.TrimPrefix(trimmed(now.Definition), "CREATE"),
		}}
	default:
		c.dropped[k] = true // and created again
	}
}

// replaceable reports whether CREATE OR REPLACE can change a function: its first line, with its
// parameters and result, is the same.
func replaceable(old, now *pgdump.Entry) bool {
	if old.Desc != "FUNCTION" && old.Desc != "PROCEDURE" {
		return false
	}

	before, _, _ := strings.Cut(old.Definition, "\n")
	after, _, _ := strings.Cut(now.Definition, "\n")

	return before == after
}

func (c *comparison) classifyTable(old, now *pgdump.Entry) {
	before, ok := parseTable(old.Definition)
	after, also := parseTable(now.Definition)
	if !ok || !also {
		c.unresolved = append(c.unresolved, "the table "+old.Namespace+"."+old.Tag)
		return
	}

	changes, moved, rest := alterTable(before, after, func(column string) bool {
		return c.new["DEFAULT\n"+now.Namespace+"\n"+now.Tag+" "+strings.Trim(column, `"`)] != nil
	})
	if rest != "" {
		c.unresolved = append(c.unresolved, rest)
	}

	c.altered[key(old)] = changes

	for i := range c.from { // views and policies that use a column that changes
		e := &c.from[i]
		uses := slices.Contains(e.Depends, old.ID) && slices.ContainsFunc(moved, func(name string) bool {
			return mentions(e.Definition, name)
		})
		if uses && slices.Contains([]string{"VIEW", "MATERIALIZED VIEW", "RULE", "POLICY", "TRIGGER"}, e.Desc) {
			c.dropped[key(e)] = true
		}
	}
}

// mentions reports whether a statement has a name.
func mentions(sql, name string) bool {
	return slices.ContainsFunc(tokens(sql), func(t sqlToken) bool { return t.text == name })
}

// spread drops the dependents of dropped objects. A dependency of a table can't be replaced: that
// would destroy the table.
func (c *comparison) spread() {
	for again := true; again; {
		again = false
		for i := range c.from {
			e := &c.from[i]
			if c.dropped[key(e)] && c.spreadFrom(e) {
				again = true
			}
		}
	}
}

// spreadFrom drops the users of an object. It reports whether it has changed anything.
func (c *comparison) spreadFrom(e *pgdump.Entry) (changed bool) {
	recreated := c.new[key(e)] != nil
	for i := range c.from {
		user := &c.from[i]
		if c.dropped[key(user)] || !slices.Contains(user.Depends, e.ID) {
			continue
		}

		switch {
		case slices.Contains(users, user.Desc):
			c.dropped[key(user)] = true
			delete(c.altered, key(user))
			changed = true
		case recreated:
			c.unresolved = append(c.unresolved, fmt.Sprintf("%s %s, which %s %s uses",
				strings.ToLower(e.Desc), qualified(e), strings.ToLower(user.Desc), qualified(user)))
			delete(c.dropped, key(e))
			c.keepNotes(e)

			return true
		}
	}

	return changed
}

// keepNotes keeps the comment and the privileges of an object that is not replaced after all.
func (c *comparison) keepNotes(of *pgdump.Entry) {
	for i := range c.from {
		e := &c.from[i]
		isNote := e.Desc == "COMMENT" || e.Desc == "ACL"
		if isNote && c.new[key(e)] != nil && slices.Contains(e.Depends, of.ID) {
			delete(c.dropped, key(e))
			c.classify(e)
		}
	}
}

func qualified(e *pgdump.Entry) string {
	if e.Namespace == "" {
		return e.Tag
	}
	return e.Namespace + "." + e.Tag
}

// drop drops objects, dependents first.
func (c *comparison) drop() {
	for i := range c.from {
		if e := &c.from[i]; c.dropped[key(e)] {
			c.imply(e)
		}
	}

	for i := len(c.from) - 1; i >= 0; i-- {
		e := &c.from[i]
		k := key(e)
		if c.dropped[k] && !c.implied[k] && !c.isLast(e) {
			c.add(dropping(e)...)
		}
	}
}

// isLast reports whether an object is dropped after everything else has changed. A function of a
// relation that goes can't wait.
func (c *comparison) isLast(e *pgdump.Entry) bool {
	if !slices.Contains(last, e.Desc) || isIdentity(e) || c.new[key(e)] != nil {
		return false
	}

	return !slices.ContainsFunc(c.from, func(used pgdump.Entry) bool {
		return isRelation(&used) && c.dropped[key(&used)] && slices.Contains(e.Depends, used.ID)
	})
}

func isRelation(e *pgdump.Entry) bool {
	return slices.Contains([]string{"TABLE", "VIEW", "MATERIALIZED VIEW"}, e.Desc)
}

// imply marks the parts that go with an object.
func (c *comparison) imply(whole *pgdump.Entry) {
	relation := isRelation(whole)
	name := objectName(whole.Drop)
	for i := range c.from {
		e := &c.from[i]
		if !c.dropped[key(e)] || !slices.Contains(e.Depends, whole.ID) {
			continue
		}

		switch {
		case slices.Contains([]string{"COMMENT", "ACL", "SECURITY LABEL"}, e.Desc):
			c.implied[key(e)] = true
		case !relation:
		case slices.Contains([]string{"INDEX", "ROW SECURITY", "SEQUENCE OWNED BY", "INDEX ATTACH"}, e.Desc),
			isIdentity(e), slices.Contains(parts, e.Desc) && isOn(e.Drop, name):
			c.implied[key(e)] = true
		}
	}
}

// isOn reports whether a statement that drops a part names the table that it belongs to.
func isOn(drop, table string) bool {
	return strings.Contains(drop, " "+table+" ") || strings.Contains(drop, " "+table+";")
}

// isIdentity reports whether a sequence is that of an identity column.
func isIdentity(e *pgdump.Entry) bool {
	return e.Desc == "SEQUENCE" && strings.Contains(e.Definition, " ADD GENERATED ")
}

// objectName returns the name in a statement such as DROP TABLE public.t.
func objectName(drop string) string {
	i := strings.LastIndexByte(strings.TrimSuffix(strings.TrimSpace(drop), ";"), ' ')
	return strings.TrimSuffix(strings.TrimSpace(drop), ";")[i+1:]
}

// add adds changes. An extension is dropped in a file of its own.
func (c *comparison) add(changes ...change) {
	for _, ch := range changes {
		if strings.HasPrefix(ch.sql, "DROP EXTENSION") {
			c.extensions = append(c.extensions, ch)
			continue
		}
		c.changes = append(c.changes, ch)
	}
}

// create creates and alters objects in the order of the dump, in which none uses a later one. It
// leaves out the privileges of created objects: the next comparison has those that differ from the
// default privileges. It attaches a partition to a table that exists after it has created the
// partition's indexes, since PostgreSQL creates those that are missing.
func (c *comparison) create() {
	created := map[int]bool{}
	var attached []change
	for i := range c.to {
		e := &c.to[i]
		k := key(e)
		if slices.Contains(afterIndexes, e.Desc) {
			c.add(attached...)
			attached = nil
		}

		switch old := c.old[k]; {
		case e.Desc == "ACL" && slices.ContainsFunc(e.Depends, func(id int) bool { return created[id] }):
		case old == nil && e.Desc == "FK CONSTRAINT" && c.isOfDetached(e):
		case (old == nil || c.dropped[k]) && c.extendsKept(e):
			attached = append(attached, creating(e, false)...)
		case old == nil, c.dropped[k]:
			created[e.ID] = true
			c.add(creating(e, c.exists(e))...)
		default:
			c.add(c.altered[k]...)
		}
	}

	c.add(attached...)
}

// isKept reports whether an object was there before and stays.
func (c *comparison) isKept(e *pgdump.Entry) bool {
	return e != nil && c.old[key(e)] != nil && !c.dropped[key(e)]
}

// exists reports whether an object belongs to a table that was there before, and so may have rows.
func (c *comparison) exists(e *pgdump.Entry) bool {
	return slices.ContainsFunc(c.to, func(t pgdump.Entry) bool {
		return t.Desc == "TABLE" && c.isKept(&t) && slices.Contains(e.Depends, t.ID) &&
			(e.Desc == "INDEX" || isOn(e.Drop, objectName(t.Drop)))
	})
}

// dropLast drops objects without dependents.
func (c *comparison) dropLast() {
	for i := len(c.from) - 1; i >= 0; i-- {
		e := &c.from[i]
		if c.dropped[key(e)] && c.isLast(e) {
			c.add(dropping(e)...)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func trimmed(sql string) string { return strings.TrimSuffix(strings.TrimSpace(sql), ";") }

// statements returns the statements of an entry.
func statements(e *pgdump.Entry) []change {
	var all []change
	for _, s := range sqllex.Split(e.Definition) {
		all = append(all, change{sql: strings.TrimSpace(s.Text)})
	}

	return all
}
