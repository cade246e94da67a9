package migration

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/sqllex"
	"github.com/socle-dev/socle/internal/statement"
)

// files returns the files of a difference. New values of enums come first, since no statement of
// their transaction can use them. Extensions are dropped last, outside a transaction.
func (d difference) files() SchemaDiff {
	found := SchemaDiff{Files: []string{}, Warnings: []DiffWarning{}}
	for _, part := range [][]change{d.values, d.changes, d.extensions} {
		if len(part) > 0 {
			found.Files = append(found.Files, fileOf(part))
		}

		for _, c := range part {
			if c.warning != "" {
				found.Warnings = append(found.Warnings, DiffWarning{c.sql, c.warning})
			}
		}
	}

	slices.Sort(d.unresolved)
	for _, left := range slices.Compact(d.unresolved) {
		found.Warnings = append(found.Warnings, DiffWarning{"", "still differs: " + left})
	}

	return found
}

// fileOf returns the text of a file. Bodies of functions are not checked, since pg_dump does not
// order functions by the dependencies of their bodies.
func fileOf(changes []change) string {
	var b strings.Builder
	if strings.HasPrefix(changes[0].sql, "DROP EXTENSION") {
		b.WriteString(noTransaction + "\n\n")
	}

	if slices.ContainsFunc(changes, func(c change) bool {
		return strings.HasPrefix(c.sql, "CREATE") && strings.Contains(c.sql, "LANGUAGE")
	}) {
		b.WriteString("SET LOCAL check_function_bodies = off;\n\n")
	}

	for i, c := range changes {
		long := strings.Contains(c.sql, "\n") || c.warning != ""
		if i > 0 && (long || strings.Contains(changes[i-1].sql, "\n")) {
			b.WriteString("\n")
		}
		if c.warning != "" {
			b.WriteString("-- warning: " + c.warning + "\n")
		}

		b.WriteString(c.sql + ";\n")
	}

	return b.String()
}

// forScratch returns the script for a session in a scratch copy, where nothing is recorded.
func (s script) forScratch(
	platform func(context.Context, func(pgx.Tx) error) error,
) statement.Script {
	if s.separate {
		return statement.Script{Field: s.field, Statements: s.statements,
			Instead: func(ctx context.Context, st sqllex.Statement) (bool, error) {
				return s.runExtension(ctx, st, platform)
			}}
	}

	return statement.Script{Field: s.field, Statements: s.statements, Instead: skipExtension,
		Begin: func(context.Context, *pgconn.PgConn) error { return nil }}
}
