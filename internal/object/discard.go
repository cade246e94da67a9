package object

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// A committed transaction hides deleted files from clients and records their blobs in
// storage.discarded. [Discard] then removes the bytes. Thus no file loses bytes before it is
// deleted, and no bytes stay behind.

const (
	discardBatch = 1000 // files removed per transaction

	// maxBackupWait limits how long a running backup defers the removal of bytes. Consecutive
	// backups would otherwise defer it forever.
	maxBackupWait = 6 * time.Hour
)

// Discard removes deleted files' bytes, and containers in deletion with their files. It is
// idempotent and may run concurrently. It returns how many blobs it removed.
func Discard(ctx context.Context, p *projectdb.Project, store *blob.Store) (int, error) {
	n := 0
	for {
		files, err := emptyContainers(ctx, p)
		if err != nil {
			return n, err
		}

		blobs, err := removeDiscarded(ctx, p, store)
		n += blobs
		if err != nil || (blobs == 0 && files == 0) {
			return n, err
		}
	}
}

// emptyContainers deletes a batch of files from containers in deletion. If none are left, it
// deletes those containers.
func emptyContainers(ctx context.Context, p *projectdb.Project) (int64, error) {
	n, err := pg.Value[int64](ctx, p.Trusted(), `
		with gone as (
			delete from storage.files where uuid in (
				select f.uuid from storage.files f join storage.containers c on c.uuid = f.container_uuid
				where c.deleting limit @batch for update of f skip locked)
			returning blob_uuid
		), noted as (
			insert into storage.discarded (blob_uuid) select blob_uuid from gone
		)
		select count(*) from gone`, pgx.StrictNamedArgs{"batch": discardBatch})
	if err != nil || n > 0 {
		return n, err
	}

	_, err = pg.Exec(ctx, p.Trusted(), `
		delete from storage.containers c
		where deleting and not exists (select from storage.files f where f.container_uuid = c.uuid)`)
	return 0, err
}

// removeDiscarded removes discarded blobs in one batch, bytes first, then records. Blobs wait while
// a backup holds a snapshot. pg_stat_activity is read after the statement's snapshot is taken: a
// backup that starts later does not see these files. pg_dump itself is ignored: it may still be
// listed when the backup has ended, and it runs only inside the backup's snapshot.
func removeDiscarded(ctx context.Context, p *projectdb.Project, store *blob.Store) (int, error) {
	blobs, err := pg.Values[uuid.UUID](ctx, p.Trusted(), `
		select blob_uuid from storage.discarded
		where discarded_at < now() - @wait::interval or not exists (
			select from pg_stat_activity
			where datname = current_database() and usename = @dumper
			  and xact_start is not null and application_name <> 'pg_dump')
		order by discarded_at limit @batch`,
		pgx.StrictNamedArgs{"batch": discardBatch, "wait": maxBackupWait, "dumper": p.DumpLogin()})
	if err != nil {
		return 0, err
	}

	for _, b := range blobs {
		if err := store.Delete(ctx, blobKey(p.UUID, b)); err != nil {
			return 0, fmt.Errorf("discard blob %s: %w", b, err)
		}
	}

	_, err = pg.Exec(ctx, p.Trusted(), `delete from storage.discarded where blob_uuid = any(@blobs)`,
		pgx.StrictNamedArgs{"blobs": blobs})
	return len(blobs), err
}
