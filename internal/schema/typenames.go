package schema

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/sqllex"
)

// foreignTypes maps names from other databases and from programming languages to PostgreSQL's
// types.
var foreignTypes = map[string]string{
	"blob": "bytea", "datetime": "timestamptz", "guid": "uuid", "longtext": "text",
	"number": "numeric", "string": "text", "tinyint": "smallint",
}

// commonTypes are the types that a misspelled name may mean.
var commonTypes = []string{
	"bigint", "bigserial", "boolean", "bytea", "char", "date", "inet", "int", "integer", "interval", "json", "jsonb",
	"numeric", "decimal", "real", "serial", "smallint", "text", "time", "timestamp", "timestamptz", "uuid", "varchar",
}

// nearestType returns the type that an unknown name likely means, among the common ones and a
// project's own, or "".
func nearestType(name string, own []string) string {
	if near := foreignTypes[name]; near != "" || len(name) > maxName {
		return near
	}

	return config.NearestWithin(min(2, len(name)/3), name, slices.Concat(commonTypes, own))
}

// name returns the type's name as the client wrote it, without capitals and modifiers.
func (t typeSpec) name() string {
	var parts []string
	l := sqllex.New(t.sql)
	for token, ok := l.Next(); ok; token, ok = l.Next() {
		if token.Kind == sqllex.QuotedName {
			parts = append(parts, unquoted(t.sql[token.Start:token.End]))
		}
	}

	if len(parts) > 1 && parts[0] == "pg_catalog" {
		parts = parts[1:]
	}

	return strings.Join(parts, ".")
}
