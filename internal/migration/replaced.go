package migration

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/pgdump"
)

// PostgreSQL can't remove an enum value, or change the type below a domain. Such a type that tables
// use is set aside under another name, created again, and dropped when the columns have the new
// one. Their values keep their text.

// formerSuffix ends a type's name while it is set aside.
const formerSuffix = "_former"

// findReplaced notes a type that is replaced: tables use it, and nothing else that stays.
func (c *comparison) findReplaced(old *pgdump.Entry) {
	now := c.new[key(old)]
	if now == nil || now.Definition == old.Definition {
		return
	}

	switch {
	case isEnum(old.Definition) && isEnum(now.Definition):
		if _, _, ok := alterEnum(old, now); ok {
			return
		}
	case old.Desc == "DOMAIN":
		if _, ok := alterDomain(parseDomain(trimmed(old.Definition)), parseDomain(trimmed(now.Definition))); ok {
			return
		}
	default:
		return
	}

	isUsed := false
	for i := range c.from {
		user := &c.from[i]
		switch {
		case !slices.Contains(user.Depends, old.ID), slices.Contains(users, user.Desc):
		case user.Desc != "TABLE", isPartitionedBy(user, objectName(old)):
			return
		default:
			isUsed = true
		}
	}

	if isUsed {
		c.replaced[objectName(old)] = old
	}
}

// isPartitionedBy reports whether a table's partition key has a column with a type. Such a column
// can't change its type.
func isPartitionedBy(e *pgdump.Entry, typ string) bool {
	t, ok := parseTable(e.Definition)
	_, partitioning, _ := strings.Cut(t.tail, "PARTITION BY")

	return ok && slices.ContainsFunc(t.columns, func(c column) bool {
		return names(c.typ, typ) && mentions(partitioning, c.name)
	})
}

// isReplaced reports whether an entry in from is a replaced type.
func (c *comparison) isReplaced(e *pgdump.Entry) bool { return c.replaced[objectName(e)] == e }

// namesReplaced reports whether a text names a type that is replaced.
func (c *comparison) namesReplaced(sql string) bool {
	for name := range c.replaced {
		if names(sql, name) {
			return true
		}
	}

	return false
}

// names reports whether a text has a qualified name.
func names(sql, name string) bool {
	if !strings.Contains(sql, name) {
		return false
	}

	all, words := tokens(sql), tokens(name)
	for i := range all {
		if i+len(words) > len(all) {
			break
		}

		same := slices.EqualFunc(all[i:i+len(words)], words, func(a, b sqlToken) bool { return a.text == b.text })
		if same {
			return true
		}
	}

	return false
}

// former returns a type's name while it is set aside.
func former(e *pgdump.Entry) string {
	name := e.Tag
	if most := 63 - len(formerSuffix); len(name) > most {
		name = strings.ToValidUTF8(name[:most], "")
	}

	return quoteTag(name + formerSuffix)
}

// setAside returns the statement that renames a type before it is created again.
func setAside(e *pgdump.Entry) change {
	return change{sql: "ALTER " + e.Desc + " " + objectName(e) + " RENAME TO " + former(e)}
}

// dropFormer returns the statement that drops a type that was set aside.
func dropFormer(e *pgdump.Entry) change {
	words := tokens(objectName(e))
	schema := objectName(e)[:words[len(words)-1].Start]

	return change{sql: "DROP " + e.Desc + " " + schema + former(e)}
}
