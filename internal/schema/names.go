package schema

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"socle/internal/fault"
)

// public is the schema of a name that names none.
const public = "public"

// reservedSchemas belong to the platform; so do all that start with pg_.
var reservedSchemas = []string{"auth", "storage", "forms", "realtime", "socle", "information_schema"}

// userSchema is the SQL condition that the schema n belongs to the user. It says the same as [reserved].
const userSchema = `n.nspname not like 'pg\_%' and n.nspname not in ('auth', 'storage', 'forms', 'realtime', 'socle', 'information_schema')`

// systemColumns are names that every table has already, and oid, which it had for decades.
var systemColumns = []string{"ctid", "oid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func reserved(schema string) bool {
	return strings.HasPrefix(schema, "pg_") || slices.Contains(reservedSchemas, schema)
}

// checkName fails with the kind on the field unless s can name something new: letters, digits and _ in ASCII,
// so that its bytes are counted by its characters, and nothing needs the server to cut it.
func checkName(kind fault.Kind, field, s string) error {
	if s == "" {
		return fault.OnField(kind, field, "required", "must not be empty")
	}
	if !identifier.MatchString(s) {
		return fault.OnField(kind, field, "invalid_format",
			"must be 1 to 63 letters, digits or _, and not start with a digit")
	}

	return nil
}

// checkSchema fails with the kind on the field schema if s can't name a schema, and with Invalid if it names
// one of the platform's.
func checkSchema(kind fault.Kind, s string) error {
	if err := checkName(kind, "schema", s); err != nil {
		return err
	}

	if reserved(s) {
		return fault.OnField(fault.Invalid, "schema", "reserved", "belongs to the platform")
	}

	return nil
}

// splitName takes a full table name apart. ok is false if it is none, or names a schema of the platform's.
func splitName(s string) (schema, table string, ok bool) {
	schema, table, qualified := strings.Cut(s, ".")
	if !qualified {
		schema, table = public, s
	}

	return schema, table, identifier.MatchString(schema) && identifier.MatchString(table) && !reserved(schema)
}

// storable reports whether the database can hold s as text.
func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
