package migration

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// domain is pg_dump's CREATE DOMAIN statement, in parts.
type domain struct {
	name        string // quoted and qualified
	base        string // type and collation
	value       string // default expression
	notNull     bool
	constraints map[string]string // CONSTRAINT name …, by name
}

// parseDomain reads a domain's definition in a dump.
func parseDomain(sql string) domain {
	all := tokens(sql)
	d := domain{constraints: map[string]string{}}
	as := slices.IndexFunc(all, func(t sqlToken) bool { return t.is("AS") })
	if as < 0 {
		return d
	}

	d.name = strings.TrimSpace(sql[all[1].End:all[as].Start])
	for from := as + 1; from < len(all); {
		to := from + 1
		for to < len(all) && !startsDomainSection(all[to]) {
			to++
		}

		switch part := sql[all[from].Start:all[to-1].End]; {
		case all[from].is("DEFAULT"):
			d.value = strings.TrimSpace(strings.TrimPrefix(part, "DEFAULT"))
		case all[from].is("NOT"):
			d.notNull = true
		case all[from].is("CONSTRAINT") && to > from+1:
			d.constraints[all[from+1].text] = part
		default:
			d.base += " " + part
		}

		from = to
	}

	return d
}

func startsDomainSection(t sqlToken) bool {
	return t.depth == 0 && t.Kind == sqllex.Word && t.is("COLLATE", "DEFAULT", "NOT", "CONSTRAINT")
}

// alterDomain returns the statements that turn one domain into another. It reports false if the
// domain must be created again.
func alterDomain(from, to domain) (all []change, ok bool) {
	if from.base != to.base {
		return nil, false
	}

	alter := "ALTER DOMAIN " + to.name + " "
	all = from.renameConstraints(alter, to)
	for _, name := range sortedKeys(from.constraints) {
		if from.constraints[name] != to.constraints[name] {
			all = append(all, change{sql: alter + "DROP CONSTRAINT " + name})
		}
	}

	switch {
	case from.value != to.value && to.value == "":
		all = append(all, change{sql: alter + "DROP DEFAULT"})
	case from.value != to.value:
		all = append(all, change{sql: alter + "SET DEFAULT " + to.value})
	}

	switch {
	case !from.notNull && to.notNull:
		all = append(all, change{sql: alter + "SET NOT NULL", warning: warnScan})
	case from.notNull && !to.notNull:
		all = append(all, change{sql: alter + "DROP NOT NULL"})
	}

	for _, name := range sortedKeys(to.constraints) {
		if from.constraints[name] != to.constraints[name] {
			all = append(all, change{sql: alter + "ADD " + to.constraints[name], warning: warnScan})
		}
	}

	return all, true
}

// renameConstraints returns the statements that give d's constraints the names that they have in
// to, and renames them in d. PostgreSQL adds none to a domain that arrays or composite types use.
func (d domain) renameConstraints(alter string, to domain) (all []change) {
	for _, name := range sortedKeys(to.constraints) {
		if d.constraints[name] != "" {
			continue
		}

		check := strings.TrimPrefix(to.constraints[name], "CONSTRAINT "+name)
		for _, former := range sortedKeys(d.constraints) {
			if to.constraints[former] == "" && d.constraints[former] == "CONSTRAINT "+former+check {
				delete(d.constraints, former)
				d.constraints[name] = to.constraints[name]
				all = append(all, change{sql: alter + "RENAME CONSTRAINT " + former + " TO " + name})

				break
			}
		}
	}

	return all
}
