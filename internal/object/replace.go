package object

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// An upload may replace the file with the same name. The old bytes stay until the new ones are
// complete. One transaction then switches the blob and records the old one for [Discard], so that
// readers get either the old file or the new one.

// maxReplaceAttempts limits the attempts to change a file that others change, create and delete.
const maxReplaceAttempts = 10

var errContention = errors.New("the file was changed concurrently too often")

// checkPresent fails with errFileChanged if the file to be replaced is a different version than the
// policies decided on, and otherwise with the error from the upload's check. present may be nil.
func (u *upload) checkPresent(present *File) error {
	if !u.actor.BypassesPolicies() && !isSameVersion(u.present, present) {
		return errFileChanged
	}
	if u.in.Check == nil {
		return nil
	}

	return u.in.Check(present)
}

func isSameVersion(a, b *File) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UUID == b.UUID && a.UpdatedAt.Equal(b.UpdatedAt)
}

// lockPresent locks the row for the file to be replaced and returns it, or nil.
func (u *upload) lockPresent(ctx context.Context, tx pgx.Tx) (*StoredFile, error) {
	if !u.in.Upsert {
		return nil, nil
	}

	f, err := pg.One[StoredFile](ctx, tx, `
		select `+storedColumns+` from storage.files where `+byName+` for no key update`,
		pgx.StrictNamedArgs{"container": u.container.UUID, "name": u.file.FullFileName})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, u.checkPresent(nil)
	case err != nil:
		return nil, err
	}

	return &f, u.checkPresent(&f.File)
}

// overwrite replaces a file's bytes. For a member, the application's values stay as they are.
func (u *upload) overwrite(ctx context.Context, tx pgx.Tx, present StoredFile) (File, error) {
	if _, err := pg.Exec(ctx, tx, `insert into storage.discarded (blob_uuid) values (@blob)`,
		pgx.StrictNamedArgs{"blob": present.BlobUUID}); err != nil {
		return File{}, err
	}

	u.replacedBlob = present.BlobUUID
	return pg.One[File](ctx, tx, `
		update storage.files
		set mime_type = @type, size = @size, sha256 = @sha256, blob_uuid = @blob, updated_at = now(), updated_by = @user,
		    owner = case when @member then owner else @owner end,
		    owner_id = case when @member then owner_id else @owner_id end,
		    cache_control = case when @member then cache_control else @cache_control end,
		    user_metadata = case when @member then user_metadata else @metadata end,
		    headers = @headers
		where uuid = @id
		returning `+fileColumns,
		u.values(pgx.StrictNamedArgs{"id": present.UUID, "blob": u.blob, "user": u.actor.UserUUID(),
			"member": u.actor.Member}))
}
