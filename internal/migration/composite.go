package migration

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/pgdump"
)

// isComposite reports whether an entry is a composite type.
func isComposite(e *pgdump.Entry) bool {
	all := tokens(e.Definition)
	as := slices.IndexFunc(all, func(t sqlToken) bool { return t.is("AS") })
	return e.Desc == "TYPE" && as > 0 && as+1 < len(all) && all[as+1].is("(")
}

// parseComposite reads a composite type's definition in a dump. The table has the type's name.
func parseComposite(definition string) (table, bool) {
	t, ok := parseTable(strings.Replace(definition, "CREATE TYPE ", "CREATE TABLE ", 1))
	t.name = strings.TrimSpace(strings.TrimSuffix(t.name, "AS"))

	return t, ok
}

// alterComposite returns the statements that turn one composite type into another. It reports false
// if the type must be created again: new attributes follow the others.
func alterComposite(from, to string) (all []change, ok bool) {
	before, known := parseComposite(from)
	after, also := parseComposite(to)
	if !known || !also {
		return nil, false
	}

	alter := "ALTER TYPE " + after.name + " "
	var names []string
	for _, a := range before.columns {
		if after.column(a.name) == nil {
			all = append(all, change{sql: alter + "DROP ATTRIBUTE " + a.name + " CASCADE", warning: warnLoss})
			continue
		}
		names = append(names, a.name)
	}

	for i, a := range after.columns {
		old := before.column(a.name)
		switch {
		case i < len(names) && a.name != names[i]:
			return nil, false
		case old == nil:
			all = append(all, change{sql: alter + "ADD ATTRIBUTE " + a.text + " CASCADE"})
		case old.text != a.text:
			all = append(all, change{
				sql: strings.TrimSpace(alter+"ALTER ATTRIBUTE "+a.name+" TYPE "+a.typ+" "+a.collate) + " CASCADE",
			})
		}
	}

	return all, true
}
