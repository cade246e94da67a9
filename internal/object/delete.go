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

// What is deleted is gone for users when its transaction is committed. The bytes follow: the transaction notes their blobs in
// storage.discarded, and [Discard] removes them. So nothing is lost that is not gone, and nothing stays that is.

// DeleteFile deletes a file of a container of project p. It fails with NotFound if there is none.
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

// DeleteFolder deletes all files of a container of project p whose names begin with a folder, all or none, and returns how many there
// were. It fails with NotFound if there is no such container or no file in the folder.
func DeleteFolder(ctx context.Context, p *tenant.Project, container uuid.UUID, folder string) (int64, error) {
	folder = strings.TrimSuffix(folder, "/")
	if err := checkFileName(folder); err != nil {
		return 0, fault.New(fault.NotFound, "there is no such folder").Because(err)
	}

	return tenant.Change(ctx, p, func(tx pgx.Tx) (int64, error) {
		// Names are compared by code points: what is in the folder lies between its slash and the character after that.
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

// DeleteContainer deletes a container of project p, and returns it as it was. With force its files go too: they are gone for
// users at once, and [Discard] removes them. It fails with NotFound if there is none, and without force with Conflict if there are
// files in it.
func DeleteContainer(ctx context.Context, p *tenant.Project, id uuid.UUID, force bool) (Container, error) {
	return tenant.Change(ctx, p, func(tx pgx.Tx) (Container, error) {
		// The row's lock keeps new files out: an upload locks it too, before it adds one.
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
	discardBatch = 1000 // files that one transaction removes

	// heldBack is for how long bytes wait for a backup at the most: who has one made after the other would keep them for good.
	heldBack = 6 * time.Hour
)

// Discard removes the bytes of deleted files of project p, and the containers that are being deleted with all that is in
// them. Each step may be taken again, and by several at once. It returns how many blobs there were.
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

// emptyContainers takes a batch of files out of containers that are being deleted, or else those containers that are empty.
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

// removeDiscarded removes a batch of blobs. A blob's note goes after its bytes. Whether a backup has its snapshot is looked at after the statement has begun: one that
// takes it later does not see the files of the notes that the statement sees. pg_dump, which may not have left when the backup is over, begins later and is done before.
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
