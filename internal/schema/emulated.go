package schema

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
)

// An emulated extension is one that no project may install, but whose functions it can have: the
// platform creates them in [ExtensionsSchema] from SQL of its own. They are no members of an
// extension; what tells them from a user's objects is their owner, the platform.

// emulation describes an emulated extension.
type emulation struct {
	mark string // one of its functions, whose name nothing else has
	note string // completes "extension NAME: "
}

var emulations = map[string]emulation{
	"http": {"http_set_curlopt",
		"its functions exist, and fail: SQL sends requests by net.http_get() and net.http_post(), which return at once"},
	"pg_jsonschema": {"jsonschema_is_valid",
		"its functions are in the schema extensions, by Socle's own rules: formats are not checked"},
}

//go:embed emulated/*.sql
var emulatedFiles embed.FS

// IsEmulated reports whether an extension is emulated.
func IsEmulated(name string) bool { return emulations[name].mark != "" }

// EmulationNote returns what differs in an emulated extension.
func EmulationNote(name string) string { return "extension " + name + ": " + emulations[name].note }

// EmulationScript returns the SQL of an emulated extension, for a schema [ExtensionsSchema] that
// exists.
func EmulationScript(name string) (string, error) {
	text, err := emulatedFiles.ReadFile("emulated/" + name + ".sql")
	return string(text), err
}

// EmulateExtension creates the functions of an emulated extension, unless the project has them. It
// fails as [CreateExtension] does if [ExtensionsSchema] is not the platform's.
func EmulateExtension(ctx context.Context, platform pg.Beginner, name string) error {
	return change(ctx, platform, func(ctx context.Context, tx pgx.Tx) error {
		present, err := EmulatedExtensions(ctx, tx)
		if err != nil || slices.Contains(present, name) {
			return err
		}
		if err := createExtensionSchema(ctx, tx); err != nil {
			return err
		}

		script, err := EmulationScript(name)
		if err != nil {
			return err
		}
		if _, err := tx.Conn().PgConn().Exec(ctx, script).ReadAll(); err != nil {
			return fmt.Errorf("emulate the extension %s: %w", name, err)
		}

		return nil
	})
}

// EmulatedExtensions returns the names of the emulated extensions that q's database has. Functions
// with their names in a schema of the project's owner are none.
func EmulatedExtensions(ctx context.Context, q pg.Querier) ([]string, error) {
	var names, marks []string
	for _, name := range slices.Sorted(maps.Keys(emulations)) {
		names, marks = append(names, name), append(marks, emulations[name].mark)
	}

	return pg.Values[string](ctx, q, `
		select m.name
		from rows from (pg_catalog.unnest(@names::text[]), pg_catalog.unnest(@marks::text[])) m(name, mark)
		where exists (
			select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
			where n.nspname = @schema and p.proname = m.mark and p.proowner = n.nspowner and n.nspowner = (
				select nspowner from pg_catalog.pg_namespace where nspname = @own) and not exists (
				select from pg_catalog.pg_depend x
				where x.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and x.objid = p.oid and x.deptype = 'e'))
		order by m.name`, pgx.StrictNamedArgs{
		"names": names, "marks": marks, "schema": ExtensionsSchema, "own": namespace.Socle})
}
