package projectdb

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
)

// The tables storage.buckets and storage.objects belong to the project's owner, who creates their
// policies. They have no rows of their own: those of their children, storage.containers and
// storage.files, belong to the platform. Event triggers refuse any other DDL on the two tables, and
// triggers any change of rows through them.

// storagePolicyTables are the tables whose policies belong to the project.
var storagePolicyTables = []string{"buckets", "objects"}

// Questions returns a pool of the request login, which may assume the roles anon and authenticated.
// Package actor resets its sessions.
func (p *Project) Questions() *pgxpool.Pool { return p.pool(questions) }

// IsPolicyTable reports whether a table has policies of the project and no rows of its own.
func IsPolicyTable(schema, table string) bool {
	return schema == "storage" && slices.Contains(storagePolicyTables, table)
}

// IsStoragePolicy reports whether an entry of a dump is a policy of the project on storage.buckets
// or storage.objects, or a comment on one. The platform has none there.
func IsStoragePolicy(desc, namespace, tag string) bool {
	return namespace == "storage" && (desc == "POLICY" || (desc == "COMMENT" && strings.HasPrefix(tag, "POLICY ")))
}

// handOver gives tables of the platform's schemas to the project's logins that own them.
func (r *Registry) handOver(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := r.handOverAuth(ctx, conn, project); err != nil {
		return err
	}
	return r.handOverStorage(ctx, conn, project)
}

// handOverStorage gives storage.buckets and storage.objects to the project's owner. It does nothing
// before the migration that creates them.
func (r *Registry) handOverStorage(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	type table struct {
		Name  string
		Owned bool
	}
	role := r.login(project, owner)
	tables, err := pg.All[table](ctx, conn, `
		select c.relname::text as name, c.relowner = (select oid from pg_roles where rolname = @role) as owned
		from pg_class c where c.relnamespace = to_regnamespace('storage') and c.relname = any(@tables)`,
		pgx.StrictNamedArgs{"role": role, "tables": storagePolicyTables})
	if err != nil || len(tables) == 0 {
		return err
	}

	developer := pg.Quote(role)
	statements := []string{
		"grant usage on schema storage to " + developer,
		"grant execute on function storage.foldername(text), storage.filename(text), storage.extension(text), " +
			"storage.object_metadata(text, bigint, bytea, text) to " + developer,
	}
	for _, t := range slices.DeleteFunc(tables, func(t table) bool { return t.Owned }) {
		statements = append(statements, "alter table "+pg.Quote("storage", t.Name)+" owner to "+developer)
	}

	return execUntriggered(ctx, conn, statements)
}
