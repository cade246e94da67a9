package object

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// A restored database can have an older release's schema, without some tables.

// unrestoredTables are the tables whose rows are not restored: transfers in progress, and derived
// data.
var unrestoredTables = []string{
	"uploads", "discarded", "upload_parts", "resumable_uploads", "multipart_parts", "multipart_uploads",
	"signed_uploads", "variants",
}

// prepareRestored gives a restored database's files new blobs, since the old ones belong to the
// database being replaced. It also deletes the rows that are not restored.
func prepareRestored(ctx context.Context, tx pgx.Tx) error {
	if _, err := pg.Exec(ctx, tx, `update storage.files set blob_uuid = gen_random_uuid()`); err != nil {
		return err
	}

	tables, err := existingTables(ctx, tx, unrestoredTables)
	if err != nil {
		return err
	}

	for _, name := range tables {
		if _, err := tx.Exec(ctx, "truncate "+pg.Quote("storage", name)+" cascade"); err != nil {
			return err
		}
	}

	return nil
}

// existingTables returns the tables that exist.
func existingTables(ctx context.Context, q pg.Querier, names []string) ([]string, error) {
	return pg.Values[string](ctx, q, `
		select relname::text from pg_class
		where relkind = 'r' and relnamespace = (select oid from pg_namespace where nspname = 'storage') and relname = any(@names)`,
		pgx.StrictNamedArgs{"names": names})
}

// repairStatements delete dangling references and recompute counters.
var repairStatements = []string{
	`delete from storage.files f where not exists (select from storage.containers c where c.uuid = f.container_uuid)`,
	`update storage.files f set bucket_id = c.id from storage.containers c where c.uuid = f.container_uuid and c.id <> f.bucket_id`,
	`update storage.containers c set pending_changes = 0, (total_files, total_size) = (
		select count(*), coalesce(sum(f.size), 0) from storage.files f where f.container_uuid = c.uuid)`,
	`delete from storage.sorted_pending`,
	`delete from storage.sorted_blocks`,
	`insert into storage.sorted_blocks (container_uuid, sort, first_text, first_number, first_time, first_uuid, files)
		select c.uuid, k.sort, '', -1, '-infinity', '00000000-0000-0000-0000-000000000000', 0
		from storage.containers c cross join storage.sort_keys('', '', 0, now(), now()) k`,
	`select storage.split_sorted(b) from storage.sorted_blocks b`,
	`insert into storage.usage (files, bytes) values (0, 0) on conflict do nothing`,
	`update storage.usage set (files, bytes) = (select count(*), coalesce(sum(size), 0) from storage.files)`,
}

// repair repairs rows that no trigger or foreign key has checked, such as an imported backup's.
// Triggers are disabled in the transaction.
func repair(ctx context.Context, tx pgx.Tx) error {
	for _, sql := range repairStatements {
		if _, err := pg.Exec(ctx, tx, sql); err != nil {
			return err
		}
	}

	return nil
}

// blobTables are the tables that refer to blobs.
var blobTables = []string{"files", "uploads", "upload_parts", "multipart_parts", "discarded", "variants"}

// listBlobs returns the blobs recorded in a database, for files, transfers in progress, discarded
// files and variants.
func listBlobs(ctx context.Context, q pg.Querier) ([]uuid.UUID, error) {
	tables, err := existingTables(ctx, q, blobTables)
	if err != nil {
		return nil, err
	}

	var blobs []uuid.UUID
	for _, name := range tables {
		some, err := pg.Values[uuid.UUID](ctx, q, "select blob_uuid from "+pg.Quote("storage", name))
		if err != nil {
			return nil, err
		}

		blobs = append(blobs, some...)
	}

	return blobs, nil
}

// copyQuota copies a database's quota to the database that is about to replace it.
func copyQuota(ctx context.Context, from, to pg.Querier) error {
	type quota struct{ MaxFiles, MaxBytes *int64 }
	q, err := pg.One[quota](ctx, from, `select max_files, max_bytes from storage.usage`)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, to, `update storage.usage set max_files = @files, max_bytes = @bytes`,
		pgx.StrictNamedArgs{"files": q.MaxFiles, "bytes": q.MaxBytes})
	return err
}

// eachContent calls f with all distinct file contents, each with one blob.
func eachContent(ctx context.Context, q pg.Querier, f func(projectdb.Content) error) error {
	rows, err := q.Query(ctx,
		`select distinct on (sha256) size, sha256, blob_uuid from storage.files order by sha256, blob_uuid`)
	if err != nil {
		return err
	}

	var c projectdb.Content
	_, err = pgx.ForEachRow(rows, []any{&c.Size, &c.SHA256, &c.BlobUUID}, func() error { return f(c) })

	return pg.Fault(err)
}

// contentsAfter returns up to n contents in blob order, after the blob last.
func contentsAfter(ctx context.Context, q pg.Querier, last uuid.UUID, n int) ([]projectdb.Content, error) {
	return pg.All[projectdb.Content](ctx, q, `
		select size, sha256, blob_uuid from storage.files where blob_uuid > @last order by blob_uuid limit @n`,
		pgx.StrictNamedArgs{"last": last, "n": n})
}

// blobOfContent returns a blob with a content, or NotFound.
func blobOfContent(ctx context.Context, p *projectdb.Project, size int64, sha256 []byte) (uuid.UUID, error) {
	return pg.Value[uuid.UUID](ctx, p.Trusted(),
		`select blob_uuid from storage.files where sha256 = @sum and size = @size limit 1`,
		pgx.StrictNamedArgs{"sum": sha256, "size": size})
}

// nameOfBlob returns the file name for a blob, or NotFound.
func nameOfBlob(ctx context.Context, p *projectdb.Project, blob uuid.UUID) (string, error) {
	return pg.Value[string](ctx, p.Trusted(), `select full_file_name from storage.files where blob_uuid = @blob`,
		pgx.StrictNamedArgs{"blob": blob})
}
