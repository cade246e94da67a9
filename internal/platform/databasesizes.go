package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// DefaultDatabaseQuota is the quota for a project's database without a separate quota.
const DefaultDatabaseQuota int64 = 1 << 40

// DatabaseSize holds a project's database size and quota, in bytes.
type DatabaseSize struct {
	Project     uuid.UUID
	Bytes, Most int64
}

// DatabaseSizes measures project databases; names[i] is the database for projects[i]. Missing
// databases are left out.
//
// PostgreSQL stats each file in a database. That costs 0.6 ms of CPU for a new database (385
// files), 62 ms for 100 databases and 0.63 s for 1000.
func (s *Store) DatabaseSizes(ctx context.Context, projects []uuid.UUID, names []string) ([]DatabaseSize, error) {
	return pg.All[DatabaseSize](ctx, s.q, `
		select p.uuid as project, coalesce(pg_database_size(d.oid), 0) as bytes, coalesce(p.max_database_bytes, @most::bigint) as most
		from unnest(@projects::uuid[], @names::text[]) as asked (uuid, name)
		join platform.projects p on p.uuid = asked.uuid
		join pg_database d on d.datname = asked.name`,
		pgx.StrictNamedArgs{"projects": projects, "names": names, "most": DefaultDatabaseQuota})
}

// DatabaseWrites returns the number of rows ever written to each database, catalogs included. It is
// 0 if PostgreSQL does not count them.
func (s *Store) DatabaseWrites(ctx context.Context, names []string) (map[string]int64, error) {
	counts, err := pg.All[struct {
		Name   string
		Writes int64
	}](ctx, s.q, `
		select datname::text as name,
			pg_stat_get_db_tuples_inserted(oid) + pg_stat_get_db_tuples_updated(oid) + pg_stat_get_db_tuples_deleted(oid) as writes
		from pg_database where datname = any(@names)`, pgx.StrictNamedArgs{"names": names})

	writes := make(map[string]int64, len(counts))
	for _, c := range counts {
		writes[c.Name] = c.Writes
	}

	return writes, err
}

// SetDatabaseQuota sets the quota of a project's database, in bytes.
func (s *Store) SetDatabaseQuota(ctx context.Context, project uuid.UUID, quota int64) error {
	_, err := pg.Exec(ctx, s.q, `update platform.projects set max_database_bytes = @most where uuid = @id`,
		pgx.StrictNamedArgs{"id": project, "most": quota})
	return err
}
