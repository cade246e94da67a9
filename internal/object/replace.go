package object

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/blob"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/tenant"
)

// replacing makes an upload replace the file of the same name. The old bytes stay until the new
// ones are complete. One transaction then switches the blob and records the old one for [Discard],
// so that readers get either the old file or the new one.
type replacing struct {
	check   func(present *File) error
	size    int64     // bytes of the replaced file; 0 if unknown
	oldBlob uuid.UUID // the replaced blob; zero if the file is new
}

func (r *replacing) room() int64 {
	if r == nil {
		return 0
	}
	return r.size
}

func (r *replacing) old() uuid.UUID {
	if r == nil {
		return uuid.Nil
	}
	return r.oldBlob
}

// WriteFile is [CreateFile] that replaces an existing file of the same name, which keeps its UUID.
// check is called with the existing file, or nil, and aborts the upload with its error. replaced
// reports whether bytes were replaced, which [Discard] must remove.
func WriteFile(
	ctx context.Context, p *tenant.Project, store *blob.Store, user, container uuid.UUID, n NewFile,
	check func(present *File) error,
) (f File, replaced bool, err error) {
	u, err := newUpload(p, store, user, container, n)
	if err != nil {
		return File{}, false, err
	}

	u.replace = &replacing{check: check}

	into, err := u.begin(ctx)
	if err != nil {
		return File{}, false, err
	}

	err = u.foresee(ctx)
	if err == nil {
		err = u.receive(ctx, n, into)
	}
	if err == nil {
		f, err = u.commit(ctx)
	}
	if err != nil {
		f, err = u.settle(ctx, err)
	}

	return f, u.replace.oldBlob != uuid.Nil, err
}

// foresee calls check before the bytes arrive, so that a refused upload is not transferred.
func (u *upload) foresee(ctx context.Context) error {
	present, err := pg.One[File](ctx, u.project.Trusted(), `
		select `+fileColumns+` from storage.files where container_uuid = @container and full_file_name = @name`,
		pgx.StrictNamedArgs{"container": u.file.ContainerUUID, "name": u.file.FullFileName})
	if fault.Is(err, fault.NotFound) {
		return u.replace.check(nil)
	}
	if err != nil {
		return err
	}

	u.replace.size = present.Size
	return u.replace.check(&present)
}

var errRestless = errors.New("the file comes and goes")

// put creates the file or replaces the existing one.
func (u *upload) put(ctx context.Context, tx pgx.Tx) (File, error) {
	// The file may be created or deleted between the select and the insert.
	for range 10 {
		present, err := pg.One[storedFile](ctx, tx, `
			select `+fileColumns+`, blob_uuid from storage.files
			where container_uuid = @container and full_file_name = @name for no key update`,
			pgx.StrictNamedArgs{"container": u.file.ContainerUUID, "name": u.file.FullFileName})

		var f File
		switch {
		case err == nil:
			f, err = u.overwrite(ctx, tx, present)
		case fault.Is(err, fault.NotFound):
			if err := u.replace.check(nil); err != nil {
				return File{}, err
			}

			u.replace.oldBlob = uuid.Nil

			if f, err = u.insert(ctx, tx); fault.Is(err, fault.NotFound) {
				continue
			}
		}

		if err == nil && (u.replace.oldBlob == uuid.Nil || u.file.Size > present.Size) {
			err = withinQuota(ctx, tx)
		}
		if err != nil {
			return File{}, err
		}

		u.made, u.file.UUID = true, f.UUID
		return f, nil
	}

	return File{}, errRestless
}

func (u *upload) overwrite(ctx context.Context, tx pgx.Tx, present storedFile) (File, error) {
	if err := u.replace.check(&present.File); err != nil {
		return File{}, err
	}
	if _, err := pg.Exec(ctx, tx, `insert into storage.discarded (blob_uuid) values (@blob)`,
		pgx.StrictNamedArgs{"blob": present.BlobUUID}); err != nil {
		return File{}, err
	}

	u.replace.oldBlob = present.BlobUUID
	return pg.One[File](ctx, tx, `
		update storage.files
		set mime_type = @type, size = @size, sha256 = @sha256, blob_uuid = @blob, updated_at = now(), updated_by = @user
		where uuid = @id
		returning `+fileColumns,
		pgx.StrictNamedArgs{
			"id": present.UUID, "type": u.file.MimeType, "size": u.file.Size, "sha256": u.sha256,
			"blob": u.blob, "user": u.user,
		})
}
