package object

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// cleanupTimeout limits cleanup after a failed upload, which continues if the client disconnects.
const cleanupTimeout = 10 * time.Second

// Sweep cleans up uploads that started more than olderThan ago and that a server crash interrupted.
// Uploads that take longer fail. It also deletes expired signed, resumable and multipart uploads.
// It returns how many blobs it deleted.
func Sweep(ctx context.Context, p *projectdb.Project, store *blob.Store, olderThan time.Duration) (int, error) {
	blobs, err := pg.Values[uuid.UUID](ctx, p.Trusted(), `
		select blob_uuid from storage.uploads where started_at < now() - @age::interval`,
		pgx.StrictNamedArgs{"age": olderThan})
	if err != nil {
		return 0, err
	}

	for _, sql := range []string{
		`delete from storage.signed_uploads where expires_at < now()`,
		`delete from storage.resumable_uploads where expires_at < now()`,
		`delete from storage.multipart_uploads where expires_at < now()`,
	} {
		if _, err := pg.Exec(ctx, p.Trusted(), sql); err != nil {
			return 0, err
		}
	}

	for i, b := range blobs {
		if _, err := discardBlob(ctx, p, store, b); err != nil {
			return i, fmt.Errorf("sweep blob %s: %w", b, err)
		}
	}

	return len(blobs), nil
}

// cleanUp cleans up after a failed upload. It returns the file if it exists nevertheless, since a
// commit can succeed although the reply was lost.
func (u *upload) cleanUp(ctx context.Context, failure error) (File, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()

	// No row to look for, and perhaps no database any more: the project may have been deleted.
	if !u.inserted {
		if err := u.store.Delete(ctx, blobKey(u.project.UUID, u.blob)); err != nil {
			return File{}, errors.Join(failure, fmt.Errorf("discard blob %s: %w", u.blob, err))
		}
	}

	exists, err := discardBlob(ctx, u.project, u.store, u.blob)
	if err != nil {
		return File{}, errors.Join(failure, fmt.Errorf("discard blob %s: %w", u.blob, err))
	}

	if !exists {
		return File{}, failure
	}
	if err := pg.Flush(ctx, u.project.Trusted()); err != nil {
		return File{}, errors.Join(failure, err)
	}

	return pg.One[File](ctx, u.project.Trusted(), `select `+fileColumns+` from storage.files where uuid = @id`,
		pgx.StrictNamedArgs{"id": u.file.UUID})
}

// discardBlob deletes a blob unless a file, a variant or a part refers to it, and reports whether
// one does.
func discardBlob(
	ctx context.Context, p *projectdb.Project, store *blob.Store, b uuid.UUID,
) (referenced bool, err error) {
	err = pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		// The delete waits for a pending commit of the upload, so that the next statement sees the
		// new file or part.
		if _, err := pg.Exec(ctx, tx, `delete from storage.uploads where blob_uuid = @blob`,
			pgx.StrictNamedArgs{"blob": b}); err != nil {
			return err
		}

		referenced, err = pg.Value[bool](ctx, tx, `select `+isReferenced+` from (values (@blob::uuid)) as v (b)`,
			pgx.StrictNamedArgs{"blob": b})
		if err != nil || referenced {
			return err
		}

		return store.Delete(ctx, blobKey(p.UUID, b))
	})

	return referenced, err
}
