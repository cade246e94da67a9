package migration

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/migration/file"
	"github.com/socle-dev/socle/internal/statement"
)

// result returns the files and what is to be told about them.
func (w *writer) result() SchemaDiff {
	diff := SchemaDiff{Files: []string{}, Warnings: []DiffWarning{}, Differences: []Difference{}}
	for _, part := range w.written.parts() {
		if len(*part) > 0 {
			diff.Files = append(diff.Files, fileOf(*part))
		}

		for _, c := range *part {
			if c.warning != "" {
				diff.Warnings = append(diff.Warnings, DiffWarning{c.sql, c.warning})
			}
		}
	}

	diff.Warnings = append(diff.Warnings, w.skipped...)
	diff.Differences = append(diff.Differences, w.written.unresolved...)
	slices.SortFunc(diff.Differences, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Message, b.Message))
	})
	diff.Differences = slices.CompactFunc(diff.Differences, func(a, b Difference) bool {
		return a.Kind == b.Kind && a.Name == b.Name
	})

	return diff
}

// withoutBodies leaves function bodies unchecked, since pg_dump does not order functions by their
// bodies' dependencies.
const withoutBodies = "SET LOCAL check_function_bodies = off"

// fileOf returns the file text for changes.
func fileOf(changes []change) string {
	var b strings.Builder
	if strings.HasPrefix(changes[0].sql, "DROP EXTENSION") {
		b.WriteString(file.NoTransaction + "\n\n")
	}

	if slices.ContainsFunc(changes, func(c change) bool {
		return strings.HasPrefix(c.sql, "CREATE") && strings.Contains(c.sql, "LANGUAGE")
	}) {
		b.WriteString(withoutBodies + ";\n\n")
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
// Extensions without a schema are created where the project has them.
func (s script) forScratch(platform statement.Platform, placed map[string]string) statement.Script {
	script := statement.Script{Field: s.field, Steps: s.steps, Platform: platform, Placed: placed}
	if !s.separate {
		script.Begin = func(context.Context, *pgconn.PgConn) error { return nil }
	}

	return script
}
