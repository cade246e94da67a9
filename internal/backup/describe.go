package backup

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/extension"
	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/projectdb"
)

// describe returns the manifest for the transaction's snapshot, without the dump, and the warnings.
func (s *Service) describe(ctx context.Context, tx pgx.Tx, b Backup) (archive.Manifest, []string, error) {
	manifest, err := s.newManifest(ctx, tx, b.ProjectUUID, b.UUID)
	if err != nil {
		return manifest, nil, err
	}

	warnings, err := extension.Unrestored(ctx, tx)
	if err != nil {
		return manifest, nil, err
	}

	settings, err := pgcluster.LoginSettings(ctx, tx)
	if err != nil {
		return manifest, nil, err
	}
	for _, name := range settings {
		warnings = append(warnings, "the setting "+name+" of a login of the project is in no backup")
	}
	slices.Sort(warnings)

	manifest.Tables, err = countRows(ctx, tx)
	return manifest, warnings, err
}

// newManifest returns the manifest for the transaction's snapshot without tables and dump. It reads
// no user table.
func (s *Service) newManifest(ctx context.Context, tx pgx.Tx, project, backup uuid.UUID) (archive.Manifest, error) {
	type about struct {
		Schema     int64
		PostgreSQL int `db:"postgresql"`
		At         time.Time
	}

	a, err := pg.One[about](ctx, tx, `
		select (select max(version_id) from socle.migrations where is_applied) as schema,
			current_setting('server_version_num')::int as postgresql, now() as at`)
	if err != nil {
		return archive.Manifest{}, err
	}

	files, err := s.contentsOf(ctx, tx)
	if err != nil {
		return archive.Manifest{}, err
	}

	extensions, err := projectdb.Extensions(ctx, tx)
	if err != nil {
		return archive.Manifest{}, err
	}

	changes, err := extension.Read(ctx, tx, s.projects.OwnerLogin(project))
	if err != nil {
		return archive.Manifest{}, err
	}

	return archive.Manifest{
		Socle:      build.Version(),
		Project:    project,
		Backup:     backup,
		Database:   s.projects.Database(project),
		Schema:     a.Schema,
		PostgreSQL: a.PostgreSQL,
		At:         a.At.UTC(),
		TimeZone:   dumpTimeZone,
		Files:      files,
		Extensions: extensions,
		Extended:   changes,
	}.WithFormat(), nil
}

// contentsOf returns a database's distinct file contents, each with one blob.
func (s *Service) contentsOf(ctx context.Context, tx pgx.Tx) (*archive.Contents, error) {
	all := &archive.Contents{}
	err := s.files.EachContent(ctx, tx, func(c projectdb.Content) error {
		return all.Add(archive.Content{Digest: archive.NewDigest(c.Size, c.SHA256), Blob: c.BlobUUID})
	})

	return all, err
}

// countRows counts the rows in every table that is dumped whole, which excludes extension tables.
// It runs as the dump login, from which policies hide no rows and for which user code in the
// database is harmless. The caller has locked the tables, or has exclusive access to the database.
func countRows(ctx context.Context, tx pgx.Tx) ([]archive.Table, error) {
	tables, err := pg.All[archive.Table](ctx, tx, `
		select n.nspname as schema, c.relname as name, 0::bigint as rows
		from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and c.relpersistence <> 't' and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
			and not (n.nspname = @own and c.relname = any(@bookkeeping))
			and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid and d.deptype = 'e')
		order by 1, 2`, pgx.StrictNamedArgs{"own": projectdb.Schema, "bookkeeping": projectdb.BookkeepingTables})
	if err != nil || len(tables) == 0 {
		return tables, err
	}

	if _, err := pg.Exec(ctx, tx, "set local lock_timeout = "+pg.Literal(indexLockTimeout)); err != nil {
		return nil, err
	}

	// A user's view may have taken a table's name and schema. Old servers lack the setting.
	if _, err := pg.Exec(ctx, tx, `
		select pg_catalog.set_config(s.name, 'view, foreign-table', true) from pg_catalog.pg_settings s where s.name = 'restrict_nonsystem_relation_kind'`); err != nil {
		return nil, err
	}

	for batch := range slices.Chunk(tables, countBatchSize) { // subslices, so that tables gets the counts
		if err := countBatch(ctx, tx, batch); err != nil {
			return nil, err
		}
	}

	return tables, nil
}

// countBatchSize is the number of tables counted before their index locks are released. The server
// has room for some thousand locks.
const countBatchSize = 500

func countBatch(ctx context.Context, tx pgx.Tx, tables []archive.Table) error {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	// to the savepoint, which releases locks acquired since
	defer func() { _ = savepoint.Rollback(context.WithoutCancel(ctx)) }()

	for i, t := range tables {
		if tables[i].Rows, err = pg.Value[int64](ctx, savepoint,
			"select count(*) from only "+pg.Quote(t.Schema)+"."+pg.Quote(t.Name)); err != nil {
			return err
		}
	}

	return nil
}
