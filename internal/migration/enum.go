package migration

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/sqllex"
)

func isEnum(definition string) bool {
	t := tokens(definition)
	return len(t) > 4 && t[0].is("CREATE") && t[1].is("TYPE") &&
		slices.ContainsFunc(t[2:min(len(t), 8)], func(t sqlToken) bool { return t.is("ENUM") })
}

// enumValues returns an enum's name and values, both quoted.
func enumValues(definition string) (name string, values []string) {
	all := tokens(definition)
	as := slices.IndexFunc(all, func(t sqlToken) bool { return t.is("AS") })
	name = strings.TrimSpace(definition[all[1].End:all[as].Start])
	for _, t := range all[as:] {
		if t.Kind == sqllex.String {
			values = append(values, t.text)
		}
	}

	return name, values
}

// classifyEnum adds an enum's new values, and renames values in their places. PostgreSQL can't
// remove one: such an enum is created again.
func (c *comparison) classifyEnum(old, now *pgdump.Entry) {
	renames, values, ok := alterEnum(old, now)
	if !ok {
		c.dropped[key(old)] = true
		return
	}

	c.altered[key(old)] = renames
	c.values = append(c.values, values...)
}

// alterEnum returns the statements that rename enum values, or add new ones. It reports false if
// the enum must be created again.
func alterEnum(old, now *pgdump.Entry) (renames, values []change, ok bool) {
	name, oldValues := enumValues(old.Definition)
	_, newValues := enumValues(now.Definition)

	if renames, ok := renameValues(name, oldValues, newValues); ok {
		return renames, nil, true
	}

	common := slices.DeleteFunc(slices.Clone(newValues), func(v string) bool { return !slices.Contains(oldValues, v) })
	if !slices.Equal(common, oldValues) {
		return nil, nil, false
	}

	for i, v := range newValues {
		if slices.Contains(oldValues, v) {
			continue
		}

		sql := "ALTER TYPE " + name + " ADD VALUE " + v
		switch {
		case i > 0:
			sql += " AFTER " + newValues[i-1]
		case len(oldValues) > 0:
			sql += " BEFORE " + oldValues[0]
		}

		values = append(values, change{sql: sql, object: key(old)})
	}

	return nil, values, true
}

// renameValues returns the statements that rename enum values. It reports false if another change
// is necessary.
func renameValues(name string, before, after []string) (all []change, ok bool) {
	if len(before) != len(after) {
		return nil, false
	}

	for i, old := range before {
		switch {
		case old == after[i]:
		case slices.Contains(after, old), slices.Contains(before, after[i]):
			return nil, false
		default:
			all = append(all,
				change{sql: "ALTER TYPE " + name + " RENAME VALUE " + old + " TO " + after[i], warning: warnRename})
		}
	}

	return all, true
}
