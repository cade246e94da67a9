package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// DefaultDatabaseBytes is what a project's database may come to, unless the project has a quota of its own.
const DefaultDatabaseBytes int64 = 1 << 40

// DatabaseSize is what a project's database comes to, and what it may, in bytes.
type DatabaseSize struct {
	Project     uuid.UUID
	Bytes, Most int64
}

// DatabaseSizes measures the databases of projects, which have these names. One that is not there is left out.
//
// PostgreSQL looks at each file of a database: that takes 0.6 ms of a processor for a new one, which has 385, 62 ms for 100 of them and 0.63 s for 1000.
func (s *Store) DatabaseSizes(ctx context.Context, projects []uuid.UUID, names []string) ([]DatabaseSize, error) {
	return pg.All[DatabaseSize](ctx, s.q, `
		select p.uuid as project, coalesce(pg_database_size(d.oid), 0) as bytes, coalesce(p.max_database_bytes, @most::bigint) as most
		from unnest(@projects::uuid[], @names::text[]) as asked (uuid, name)
		join platform.projects p on p.uuid = asked.uuid
		join pg_database d on d.datname = asked.name`,
		pgx.StrictNamedArgs{"projects": projects, "names": names, "most": DefaultDatabaseBytes})
}

// DatabaseWrites returns how many rows were ever written to databases, those of the catalogue included: 0 if PostgreSQL does not count them.
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

// LimitDatabase says what a project's database may come to, in bytes.
func (s *Store) LimitDatabase(ctx context.Context, project uuid.UUID, most int64) error {
	_, err := pg.Exec(ctx, s.q, `update platform.projects set max_database_bytes = @most where uuid = @id`,
		pgx.StrictNamedArgs{"id": project, "most": most})
	return err
}
