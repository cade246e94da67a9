package schema

import (
	"regexp"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/namespace"
)

const maxName = 63 // PostgreSQL's limit, in bytes

// public is the schema for an unqualified name.
const public = "public"

// DefaultSchema is the schema of objects without one.
const DefaultSchema = public

// userSchema is the SQL condition that schema n belongs to the user. It is the counterpart to
// [namespace.IsReserved]; a service's schema belongs to its owner.
const userSchema = `n.nspname not like 'pg\_%' and not (n.nspname in ('cron', 'net', 'pgmq', 'pgmq_public', 'supabase_functions', 'vault') and n.nspowner = (
	select nspowner from pg_catalog.pg_namespace where nspname = 'socle'))
	and n.nspname not in ('auth', 'forms', 'realtime', 'socle', 'storage', 'information_schema')`

// systemColumns are every table's system columns, and oid, which was one before PostgreSQL 12.
var systemColumns = []string{"ctid", "oid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// checkName fails with kind on field unless s is a valid name for a new object: ASCII letters,
// digits and _. So characters equal bytes, and PostgreSQL truncates no name.
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

// lettersOfAnyScript matches the names that an import derives from a file's headers.
var lettersOfAnyScript = regexp.MustCompile(`^[\p{L}_][\p{L}\p{M}\p{Nd}_]*$`)

// checkLetters is [checkName] for names with letters from any script.
func checkLetters(kind fault.Kind, field, s string) error {
	if len(s) <= 63 && lettersOfAnyScript.MatchString(s) {
		return nil
	}
	return checkName(kind, field, s)
}

// checkSchema fails with kind on the field schema if s is no valid schema name, and with Invalid if
// the schema is reserved for the platform.
func checkSchema(kind fault.Kind, s string) error {
	if err := checkName(kind, "schema", s); err != nil {
		return err
	}

	if namespace.IsReserved(s) {
		return fault.OnField(fault.Invalid, "schema", "reserved", "belongs to the platform")
	}

	return nil
}

// splitName splits a full table name. ok is false if it is invalid or names a reserved schema.
func splitName(s string) (schema, table string, ok bool) {
	schema, table, isQualified := strings.Cut(s, ".")
	if !isQualified {
		schema, table = public, s
	}

	isName := identifier.MatchString(schema) && identifier.MatchString(table)
	return schema, table, isName && !namespace.IsReserved(schema)
}
