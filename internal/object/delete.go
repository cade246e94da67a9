package object

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/blob"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/tenant"
)

// A committed transaction hides deleted files from clients and records their blobs in
// storage.discarded. [Discard] then removes the bytes. Thus no file loses its bytes before it is
// deleted, and no bytes stay behind.

// DeleteFile deletes a file of a container of project p. It fails with NotFound if it does not
// exist.
func DeleteFile(ctx context.Context, p *tenant.Project, container, file uuid.UUID) (File, error) {
	return tenant.Change(ctx, p, func(tx pgx.Tx) (File, error) {
		return pg.One[File](ctx, tx, `
			with gone as (
				delete from storage.files where uuid = @file and container_uuid = @container returning *
			), noted as (
				insert into storage.discarded (blob_uuid) select blob_uuid from gone
			)
			select `+fileColumns+` from gone`, pgx.StrictNamedArgs{"file": file, "container": container})
	})
}

// DeleteFolder deletes all files of a container of project p below a folder in one transaction and
// returns their number. It fails with NotFound if the container does not exist or the folder is
// empty.
func DeleteFolder(ctx context.Context, p *tenant.Project, container uuid.UUID, folder string) (int64, error) {
	folder = strings.TrimSuffix(folder, "/")
	if err := checkFileName(folder); err != nil {
		return 0, fault.New(fault.NotFound, "there is no such folder").Because(err)
	}

	return tenant.Change(ctx, p, func(tx pgx.Tx) (int64, error) {
		// Names are ordered by code point: the files of a folder sort between its slash and the
		// next character, which is 0.
		n, err := pg.Value[int64](ctx, tx, `
			with gone as (
				delete from storage.files f
				using storage.containers c
				where c.uuid = @container and not c.deleting and f.container_uuid = c.uuid
				  and f.full_file_name >= @first and f.full_file_name < @last
				returning f.blob_uuid
			), noted as (
				insert into storage.discarded (blob_uuid) select blob_uuid from gone
			)
			select count(*) from gone`,
			pgx.StrictNamedArgs{"container": container, "first": folder + "/", "last": folder + "0"})
		if err == nil && n == 0 {
			err = fault.New(fault.NotFound, "there is no such folder")
		}

		return n, err
	})
}

// DeleteContainer deletes a container of project p and returns its last state. With force it
// deletes the files too: they disappear at once, and [Discard] removes their bytes. It fails with
// NotFound if the container does not exist, and without force with Conflict if it has files.
func DeleteContainer(ctx context.Context, p *tenant.Project, id uuid.UUID, force bool) (Container, error) {
	return tenant.Change(ctx, p, func(tx pgx.Tx) (Container, error) {
		// The row lock keeps new files out, since an upload locks the row before it adds a file.
		if _, err := pg.Value[uuid.UUID](ctx, tx,
			`select uuid from storage.containers where uuid = @id and not deleting for update`,
			pgx.StrictNamedArgs{"id": id}); err != nil {
			return Container{}, err
		}

		c, err := pg.One[Container](ctx, tx, `select `+containerColumns+` from storage.containers where uuid = @id`,
			pgx.StrictNamedArgs{"project": p.UUID, "id": id})
		if err != nil {
			return c, err
		}

		if c.TotalFiles == 0 {
			_, err = pg.Exec(ctx, tx, `delete from storage.containers where uuid = @id`, pgx.StrictNamedArgs{"id": id})
			return c, err
		}

		if !force {
			return c, fault.New(fault.Conflict, "there are %d files in it; say force=true to delete them too",
				c.TotalFiles).WithCode("in_use")
		}

		_, err = pg.Exec(ctx, tx, `update storage.containers set deleting = true, name = uuid::text where uuid = @id`,
			pgx.StrictNamedArgs{"id": id})
		return c, err
	})
}

const (
	discardBatch = 1000 // files removed per transaction

	// heldBack limits how long a running backup defers the removal of bytes. Consecutive backups
	// would otherwise defer it forever.
	heldBack = 6 * time.Hour
)

// Discard removes the bytes of deleted files of project p, and the containers in deletion with
// their files. It is idempotent and may run concurrently. It returns the number of removed blobs.
func Discard(ctx context.Context, p *tenant.Project, store *blob.Store) (int, error) {
	n := 0
	for {
		emptied, err := emptyContainers(ctx, p)
		if err != nil {
			return n, err
		}

		removed, err := removeDiscarded(ctx, p, store)
		n += removed
		if err != nil || removed == 0 && emptied == 0 {
			return n, err
		}
	}
}

// emptyContainers deletes a batch of files of containers in deletion. If there are none left, it
// deletes the empty containers.
func emptyContainers(ctx context.Context, p *tenant.Project) (int64, error) {
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
		delete from storage.containers c where deleting and not exists (select from storage.files f where f.container_uuid = c.uuid)`)
	return 0, err
}

// removeDiscarded removes a batch of discarded blobs, and their records after the bytes. Blobs wait
// while a backup holds a snapshot. pg_stat_activity is read after the statement's snapshot is
// taken: a backup that starts later does not see the files of these records. pg_dump itself is
// ignored: it may still be listed when the backup has ended, and it runs only inside the backup's
// snapshot.
func removeDiscarded(ctx context.Context, p *tenant.Project, store *blob.Store) (int, error) {
	blobs, err := pg.Values[uuid.UUID](ctx, p.Trusted(), `
		select blob_uuid from storage.discarded
		where discarded_at < now() - @held::interval or not exists (
			select from pg_stat_activity
			where datname = current_database() and usename = @dumper and xact_start is not null and application_name <> 'pg_dump')
		order by discarded_at limit @batch`,
		pgx.StrictNamedArgs{"batch": discardBatch, "held": heldBack, "dumper": p.Dumper()})
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
