package migration

import (
	"strings"

	"github.com/socle-dev/socle/internal/pgdump"
)

// addMapping stands before the token type in a statement that gives a text search configuration's
// tokens their dictionaries.
const addMapping = "ADD MAPPING FOR "

// alterConfiguration returns the statements that turn one text search configuration into another,
// since columns and indexes that use it keep it. It reports false if they have different parsers.
func alterConfiguration(old, now *pgdump.Entry) (all []change, ok bool) {
	from, to := statements(old), statements(now)
	if len(from) == 0 || len(to) == 0 || from[0].sql != to[0].sql {
		return nil, false
	}

	alter := "ALTER TEXT SEARCH CONFIGURATION " + objectName(now) + " "
	before, after := mappings(from[1:]), mappings(to[1:])
	for _, token := range sortedKeys(before) {
		if after[token] == "" {
			all = append(all, change{sql: alter + "DROP MAPPING FOR " + token})
		}
	}

	for _, token := range sortedKeys(after) {
		verb := "ALTER MAPPING FOR "
		if before[token] == "" {
			verb = addMapping
		}
		if before[token] != after[token] {
			all = append(all, change{sql: alter + verb + token + " WITH " + after[token]})
		}
	}

	return all, true
}

// mappings returns the dictionaries by token type.
func mappings(statements []change) map[string]string {
	all := map[string]string{}
	for _, s := range statements {
		_, mapping, _ := strings.Cut(s.sql, addMapping)
		token, dictionaries, _ := strings.Cut(mapping, " WITH ")
		all[token] = dictionaries
	}

	return all
}
