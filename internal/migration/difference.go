package migration

import (
	"maps"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/sqllex"
)

// change is a migration's statement, without its semicolon.
type change struct {
	sql     string
	warning string // possible data loss or long lock; "": none
	object  string // entry's key
}

func (c change) isRefresh() bool { return strings.HasPrefix(c.sql, "REFRESH ") }

// Warnings.
const (
	warnLoss     = "destroys data"
	warnRewrite  = "rewrites the table, which nobody can read or write meanwhile"
	warnReplaced = "rewrites the table, and fails if a row has a value that the new type does not"
	warnScan     = "reads the whole table, which nobody can write meanwhile, and fails if a row violates it"
	warnIndex    = "reads the whole table, which nobody can write meanwhile"
	warnRows     = "fails if the table has rows"
	warnRefresh  = "runs the query of the view"
	warnRename   = "rows with the former value get the new one"
)

// difference is the statements that turn one schema into another.
type difference struct {
	values     []change // new enum values, which no statement in their transaction can use
	changes    []change
	extensions []change     // dropped, which is not possible in a transaction
	unresolved []Difference // that no statement removes
}

func (d difference) size() int   { return len(d.values) + len(d.changes) + len(d.extensions) }
func (d difference) empty() bool { return d.size() == 0 }

// comparison compares two schemas.
type comparison struct {
	from, to []pgdump.Entry
	old, new map[string]*pgdump.Entry // by key

	dropped map[string]bool // entries in from that are dropped
	implied map[string]bool // dropped together with another entry
	altered map[string][]change

	failed   map[string]string        // messages from changes that failed before
	replaced map[string]*pgdump.Entry // types that are created again while tables use them, by name

	refreshed []change // changes for the created views

	difference
}

// compare returns the statements that turn the schema from into the schema to. Both are a dump's
// entries, see [relevant]. failed has the keys of objects whose changes failed before: compare
// creates their dependents again.
func compare(from, to []pgdump.Entry, failed map[string]string) difference {
	c := &comparison{
		from: from, to: to, old: byKey(from), new: byKey(to), dropped: map[string]bool{}, implied: map[string]bool{},
		altered: map[string][]change{}, failed: failed, replaced: map[string]*pgdump.Entry{},
	}

	for i := range from {
		c.findReplaced(&from[i])
	}
	for i := range from {
		c.classify(&from[i])
	}

	c.deferPartitions()
	for i := range from {
		k := key(&from[i])
		if _, ok := failed[k]; ok && (c.dropped[k] || len(c.altered[k]) > 0) {
			c.release(&from[i])
		}
	}

	c.spread()
	c.drop()
	c.create()
	c.dropLast()

	return c.difference
}

// key identifies an entry. Objects with different kinds may have equal tags, and operators' tags
// lack the types.
func key(e *pgdump.Entry) string {
	k := e.Desc + "\n" + e.Namespace + "\n" + e.Tag
	if strings.HasPrefix(e.Desc, "OPERATOR") {
		k += "\n" + e.Drop
	}

	return k
}

// byKey returns entries by their key.
func byKey(entries []pgdump.Entry) map[string]*pgdump.Entry {
	all := map[string]*pgdump.Entry{}
	for i := range entries {
		if k := key(&entries[i]); all[k] == nil {
			all[k] = &entries[i]
		}
	}

	return all
}

// classify decides whether an entry in from is kept, altered, or dropped.
func (c *comparison) classify(old *pgdump.Entry) {
	k := key(old)
	now := c.new[k]
	switch {
	case now == nil:
		c.dropped[k] = true
	case old.Desc == "TABLE" && c.namesReplaced(old.Definition):
		c.classifyTable(old, now)
	case now.Definition == old.Definition:
	case old.Desc == "TABLE":
		c.classifyTable(old, now)
	case isEnum(old.Definition) && isEnum(now.Definition):
		c.classifyEnum(old, now)
	case isComposite(old) && isComposite(now):
		changes, ok := alterComposite(old.Definition, now.Definition)
		c.altered[k], c.dropped[k] = changes, !ok
	case old.Desc == "DOMAIN":
		changes, ok := alterDomain(parseDomain(trimmed(old.Definition)), parseDomain(trimmed(now.Definition)))
		c.altered[k], c.dropped[k] = changes, !ok
	case old.Desc == "TEXT SEARCH CONFIGURATION":
		changes, ok := alterConfiguration(old, now)
		c.altered[k], c.dropped[k] = changes, !ok
	case old.Desc == "ACL", old.Desc == "DEFAULT ACL":
		c.altered[k] = regrant(old.Definition, now.Definition)
	case old.Desc == "COMMENT", old.Desc == "DEFAULT":
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

	oldHead, _, _ := strings.Cut(old.Definition, "\n")
	newHead, _, _ := strings.Cut(now.Definition, "\n")

	return oldHead == newHead
}

func (c *comparison) classifyTable(old, now *pgdump.Entry) {
	oldTable, ok := parseTable(old.Definition)
	newTable, also := parseTable(now.Definition)
	if !ok || !also {
		c.unresolved = append(c.unresolved, differing(key(old), "its definition has a form that is not known"))
		return
	}

	a := &alteration{from: oldTable, to: newTable, replaced: c.namesReplaced, viaText: c.failed[key(old)] != "",
		hasDefault: func(column string) bool {
			return c.new["DEFAULT\n"+now.Namespace+"\n"+now.Tag+" "+unquoted(column)] != nil
		}}
	a.run()
	if a.rest != "" {
		c.unresolved = append(c.unresolved, differing(key(old), a.rest))
	}

	c.altered[key(old)] = a.changes

	for i := range c.from { // views and policies that use a column that changes
		e := &c.from[i]
		uses := slices.Contains(e.Depends, old.ID) && slices.ContainsFunc(a.moved, func(name string) bool {
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
		switch {
		case !c.dropped[k] || c.implied[k] || c.isLast(e):
		case c.isReplaced(e):
			c.add(e, setAside(e))
		default:
			c.add(e, dropping(e)...)
		}
	}
}

// isLast reports whether an object is dropped after everything else has changed. A function that
// belongs to a dropped relation can't wait.
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
	name := objectName(whole)
	for i := range c.from {
		e := &c.from[i]
		if !c.dropped[key(e)] || !slices.Contains(e.Depends, whole.ID) {
			continue
		}

		switch {
		case slices.Contains([]string{"COMMENT", "ACL", "SECURITY LABEL"}, e.Desc):
			c.implied[key(e)] = true
		case !relation:
		case e.Desc == "SEQUENCE" && c.new[key(e)] == nil: // owned by a column
			c.implied[key(e)], c.implied[ownership(e)] = true, true
		case slices.Contains([]string{"INDEX", "ROW SECURITY", "INDEX ATTACH"}, e.Desc),
			isIdentity(e), slices.Contains(parts, e.Desc) && isOn(e.Drop, name):
			c.implied[key(e)] = true
		}
	}
}

// isOn reports whether a statement that drops a part names the table that it belongs to.
func isOn(drop, table string) bool {
	return strings.Contains(drop, " "+table+" ") || strings.Contains(drop, " "+table+";")
}

// isIdentity reports whether a sequence belongs to an identity column.
func isIdentity(e *pgdump.Entry) bool {
	return e.Desc == "SEQUENCE" && strings.Contains(e.Definition, " ADD GENERATED ")
}

// objectName returns the name in a statement such as DROP TABLE public.t.
func objectName(e *pgdump.Entry) string {
	return strings.TrimPrefix(trimmed(e.Drop), "DROP "+e.Desc+" ")
}

// unquoted returns a name without its quotes.
func unquoted(name string) string {
	if inner, ok := strings.CutPrefix(name, `"`); ok {
		return strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `""`, `"`)
	}
	return name
}

// add adds an object's changes. An extension is dropped in a separate file.
func (c *comparison) add(e *pgdump.Entry, changes ...change) {
	for _, ch := range changes {
		ch.object = key(e)
		switch {
		case strings.HasPrefix(ch.sql, "DROP EXTENSION"):
			c.extensions = append(c.extensions, ch)
		case ch.isRefresh():
			c.refreshed = append(c.refreshed, ch)
		default:
			c.changes = append(c.changes, ch)
		}
	}
}

// create creates and alters objects in dump order, in which none uses a later one. It leaves out
// created objects' privileges: the next comparison has those that differ from the default
// privileges. It attaches a partition to a table that exists after it has created the partition's
// indexes, since PostgreSQL creates those that are missing. Views are filled last, since their
// queries may call functions that use anything.
func (c *comparison) create() {
	isCreated := map[int]bool{}
	var attached []*pgdump.Entry
	attach := func() {
		for _, e := range attached {
			c.add(e, creating(e, false)...)
		}
		attached = nil
	}

	for i := range c.to {
		e := &c.to[i]
		k := key(e)
		if slices.Contains(afterIndexes, e.Desc) {
			attach()
		}

		switch old := c.old[k]; {
		case e.Desc == "ACL" && slices.ContainsFunc(e.Depends, func(id int) bool { return isCreated[id] }):
		case old == nil && e.Desc == "FK CONSTRAINT" && c.isOfDetached(e):
		case (old == nil || c.dropped[k]) && c.extendsKept(e):
			attached = append(attached, e)
		case old == nil, c.dropped[k]:
			isCreated[e.ID] = true
			c.add(e, creating(e, c.exists(e))...)
		default:
			c.add(e, c.altered[k]...)
		}
	}

	attach()
	c.changes = append(c.changes, c.refreshed...)
}

// isKept reports whether an object was there before and stays.
func (c *comparison) isKept(e *pgdump.Entry) bool {
	return e != nil && c.old[key(e)] != nil && !c.dropped[key(e)]
}

// exists reports whether an object belongs to a table that was there before, and so may have rows.
func (c *comparison) exists(e *pgdump.Entry) bool {
	return slices.ContainsFunc(c.to, func(t pgdump.Entry) bool {
		return t.Desc == "TABLE" && c.isKept(&t) && slices.Contains(e.Depends, t.ID) &&
			(e.Desc == "INDEX" || isOn(e.Drop, objectName(&t)))
	})
}

// dropLast drops objects without dependents.
func (c *comparison) dropLast() {
	for i := len(c.from) - 1; i >= 0; i-- {
		e := &c.from[i]
		switch {
		case c.dropped[key(e)] && c.isReplaced(e):
			c.add(e, dropFormer(e))
		case c.dropped[key(e)] && c.isLast(e):
			c.add(e, dropping(e)...)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func trimmed(sql string) string { return strings.TrimSuffix(strings.TrimSpace(sql), ";") }

// statements returns an entry's statements.
func statements(e *pgdump.Entry) []change {
	var all []change
	for _, s := range sqllex.Split(e.Definition) {
		all = append(all, change{sql: strings.TrimSpace(s.Text)})
	}

	return all
}
