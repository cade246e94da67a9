package object

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// replacement makes an upload replace the file of the same name. The old bytes stay until the new
// ones are complete. One transaction then switches the blob and records the old one for [Discard],
// so that readers get either the old file or the new one.
type replacement struct {
	check   func(present *File) error
	oldSize int64     // bytes of the replaced file; 0 if unknown
	oldBlob uuid.UUID // the replaced blob; zero if the file is new
}

func (r *replacement) freedBytes() int64 {
	if r == nil {
		return 0
	}
	return r.oldSize
}

func (r *replacement) replacedBlob() uuid.UUID {
	if r == nil {
		return uuid.Nil
	}
	return r.oldBlob
}

// WriteFile is [CreateFile] that replaces an existing file of the same name, which keeps its UUID.
// check is called with the existing file, or nil, and aborts the upload with its error. replaced
// reports whether bytes were replaced, which [Discard] must remove.
func WriteFile(
	ctx context.Context, p *projectdb.Project, store *blob.Store, user, container uuid.UUID, n NewFile,
	check func(present *File) error,
) (f File, replaced bool, err error) {
	u, err := newUpload(p, store, user, container, n)
	if err != nil {
		return File{}, false, err
	}

	u.replacement = &replacement{check: check}

	limits, err := u.begin(ctx)
	if err != nil {
		return File{}, false, err
	}

	f, err = u.transfer(ctx, n, limits)
	if err != nil {
		f, err = u.cleanUp(ctx, err)
	}

	return f, u.replacement.oldBlob != uuid.Nil, err
}

// checkExisting calls check before the bytes arrive, so that a refused upload is not transferred.
func (u *upload) checkExisting(ctx context.Context) error {
	existing, err := pg.One[File](ctx, u.project.Trusted(), `
		select `+fileColumns+` from storage.files where `+named,
		pgx.StrictNamedArgs{"container": u.file.ContainerUUID, "name": u.file.FullFileName})
	if fault.Is(err, fault.NotFound) {
		return u.replacement.check(nil)
	}
	if err != nil {
		return err
	}

	u.replacement.oldSize = existing.Size
	return u.replacement.check(&existing)
}

// maxReplaceAttempts limits the attempts to insert or replace a file that others create and delete.
const maxReplaceAttempts = 10

var errContention = errors.New("the file was created and deleted concurrently too often")

// insertOrReplace creates the file or replaces the existing one.
func (u *upload) insertOrReplace(ctx context.Context, tx pgx.Tx) (File, error) {
	// The file may be created or deleted between the select and the insert.
	for range maxReplaceAttempts {
		existing, err := pg.One[storedFile](ctx, tx, `
			select `+fileColumns+`, blob_uuid from storage.files
			where `+named+` for no key update`,
			pgx.StrictNamedArgs{"container": u.file.ContainerUUID, "name": u.file.FullFileName})

		var f File
		switch {
		case err == nil:
			f, err = u.overwrite(ctx, tx, existing)
		case fault.Is(err, fault.NotFound):
			if err := u.replacement.check(nil); err != nil {
				return File{}, err
			}

			u.replacement.oldBlob = uuid.Nil

			if f, err = u.insert(ctx, tx); fault.Is(err, fault.NotFound) {
				continue
			}
		}

		if err == nil && (u.replacement.oldBlob == uuid.Nil || u.file.Size > existing.Size) {
			err = checkQuota(ctx, tx)
		}
		if err != nil {
			return File{}, err
		}

		u.inserted, u.file.UUID = true, f.UUID
		return f, nil
	}

	return File{}, errContention
}

func (u *upload) overwrite(ctx context.Context, tx pgx.Tx, existing storedFile) (File, error) {
	if err := u.replacement.check(&existing.File); err != nil {
		return File{}, err
	}
	if _, err := pg.Exec(ctx, tx, `insert into storage.discarded (blob_uuid) values (@blob)`,
		pgx.StrictNamedArgs{"blob": existing.BlobUUID}); err != nil {
		return File{}, err
	}

	u.replacement.oldBlob = existing.BlobUUID
	return pg.One[File](ctx, tx, `
		update storage.files
		set mime_type = @type, size = @size, sha256 = @sha256, blob_uuid = @blob, updated_at = now(), updated_by = @user,
		    owner = case when @application then @owner else owner end,
		    owner_id = case when @application then @owner_id else owner_id end,
		    cache_control = case when @application then @cache_control else cache_control end,
		    user_metadata = case when @application then @metadata else user_metadata end
		where uuid = @id
		returning `+fileColumns,
		u.owned.arguments(pgx.StrictNamedArgs{
			"id": existing.UUID, "type": u.file.MimeType, "size": u.file.Size, "sha256": u.sha256,
			"blob": u.blob, "user": u.user, "application": u.owned.application,
		}))
}
