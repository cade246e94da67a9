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

// replacing is how an upload replaces the file that has its name. The bytes there stay until the new ones are whole: one transaction switches from
// the one blob to the other, and notes the old one for [Discard]. Whoever reads meanwhile gets the old file or the new one.
type replacing struct {
	check   func(present *File) error
	size    int64     // of the bytes that are replaced, as far as is known
	oldBlob uuid.UUID // that was replaced; zero if the file is new
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

// WriteFile is [CreateFile] for a name that may be taken: then the file of that name gets the bytes and keeps its UUID. check judges the file that is
// there, nil if there is none; with what it fails WriteFile fails. replaced says that bytes were replaced, which are to be discarded.
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

// foresee looks at the file that is there before the bytes arrive, so that they need not if it is not to be replaced.
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

// put makes the file or replaces the one that is there.
func (u *upload) put(ctx context.Context, tx pgx.Tx) (File, error) {
	for range 10 { // between the look and the insert somebody may make the file or delete it
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
