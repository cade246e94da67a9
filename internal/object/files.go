package object

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// File describes a file of a container.
type File struct {
	UUID          uuid.UUID `json:"uuid" format:"uuid"`
	ContainerUUID uuid.UUID `json:"containerUuid" format:"uuid"`
	FullFileName  string    `json:"fullFileName" doc:"Name, including folders."`
	MimeType      string    `json:"mimeType"`
	Size          int64     `json:"size" doc:"Bytes."`
	CreatedAt     time.Time `json:"createdAt"`
	CreatedBy     uuid.UUID `json:"createdBy" format:"uuid"`
	UpdatedAt     time.Time `json:"updatedAt"`
	UpdatedBy     uuid.UUID `json:"updatedBy" format:"uuid"`
	SHA256        []byte    `json:"-" db:"sha256"`
	Headers       Headers   `json:"-"`
}

// FileUpdate holds the values to change; nil leaves a value unchanged.
type FileUpdate struct {
	FullFileName *string
	Container    *uuid.UUID // the destination
}

// ETag returns the strong entity tag of the file's bytes, which is derived from their checksum.
func (f File) ETag() string {
	return `"` + base64.RawURLEncoding.EncodeToString(f.SHA256[:16]) + `"`
}

const fileColumns = `
	uuid, container_uuid, full_file_name, mime_type, size, sha256, created_at, created_by, updated_at, updated_by,
	headers`

// named ends a statement that selects the file of a name in a container. The order makes PostgreSQL
// read the index of names by every plan. By a plan from a time without files, it reads equal names
// from any index on the container, and so all files of the container.
const named = `container_uuid = @container and full_file_name between @name and @name order by full_file_name limit 1`

// GetFile returns a file of a container of project p. It fails with NotFound if it does not exist.
func GetFile(ctx context.Context, p *projectdb.Project, container, file uuid.UUID) (File, error) {
	return pg.One[File](ctx, p.Trusted(), `
		select `+fileColumns+` from storage.files f
		where uuid = @file and container_uuid = @container
		  and not exists (select from storage.containers c where c.uuid = f.container_uuid and c.deleting)`,
		pgx.StrictNamedArgs{"file": file, "container": container})
}

// OpenFile returns a file of a container of project p and its content, which the caller closes. It
// fails with NotFound if the container has no such file.
func OpenFile(
	ctx context.Context, p *projectdb.Project, store *blob.Store, container, file uuid.UUID,
) (File, *Content, error) {
	return open(ctx, p, store, fileByUUID(ctx, p, container, file))
}

func fileByUUID(ctx context.Context, p *projectdb.Project, container, file uuid.UUID) func() (storedFile, error) {
	return func() (storedFile, error) {
		return pg.One[storedFile](ctx, p.Trusted(), `
			select `+fileColumns+`, blob_uuid from storage.files f
			where uuid = @file and container_uuid = @container
			  and not exists (select from storage.containers c where c.uuid = f.container_uuid and c.deleting)`,
			pgx.StrictNamedArgs{"file": file, "container": container})
	}
}

// OpenFileByName is [OpenFile] by name. If the caller is not a member of the project, it fails with
// NotFound unless the container is public.
func OpenFileByName(
	ctx context.Context, p *projectdb.Project, store *blob.Store, container uuid.UUID, fullFileName string, member bool,
) (File, *Content, error) {
	find, err := fileByName(ctx, p, container, fullFileName, member)
	if err != nil {
		return File{}, nil, err
	}

	return open(ctx, p, store, find)
}

func fileByName(
	ctx context.Context, p *projectdb.Project, container uuid.UUID, fullFileName string, member bool,
) (func() (storedFile, error), error) {
	if err := checkFileName(fullFileName); err != nil {
		return nil, fault.New(fault.NotFound, "the file does not exist").WithCause(err)
	}

	return func() (storedFile, error) {
		return pg.One[storedFile](ctx, p.Trusted(), `
			select `+fileColumns+`, blob_uuid from storage.files f
			where exists (
				select from storage.containers c
				where c.uuid = f.container_uuid and not c.deleting and (c.is_public or @member)
			  )
			  and `+named,
			pgx.StrictNamedArgs{"name": fullFileName, "container": container, "member": member})
	}, nil
}

// UpdateFile renames a file of a container of project p, or moves it to another container, on
// behalf of user. It copies no bytes. It fails with NotFound if the file does not exist, with
// Unprocessable on every invalid field, including the limits of the destination, and with Conflict
// on full_file_name if the name is taken there.
func UpdateFile(
	ctx context.Context, p *projectdb.Project, user, container, file uuid.UUID, u FileUpdate,
) (File, error) {
	updated, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (File, error) {
		f, err := pg.One[File](ctx, tx, `
			select `+fileColumns+
			` from storage.files where uuid = @file and container_uuid = @container for no key update`,
			pgx.StrictNamedArgs{"file": file, "container": container})
		if err != nil {
			return f, err
		}

		if err := u.check(ctx, tx, f); err != nil {
			return f, err
		}

		return u.apply(ctx, tx, user, file)
	})
	if pg.Violates(err, "files_full_file_name_key") {
		return updated, nameTaken().WithCause(err)
	}

	return updated, err
}

// apply changes a file.
func (u FileUpdate) apply(ctx context.Context, tx pgx.Tx, user, file uuid.UUID) (File, error) {
	return pg.One[File](ctx, tx, `
		update storage.files
		set full_file_name = coalesce(@name, full_file_name), container_uuid = coalesce(@to, container_uuid),
		    updated_by = @user, updated_at = now()
		where uuid = @file
		returning `+fileColumns,
		pgx.StrictNamedArgs{"file": file, "name": u.FullFileName, "to": u.Container, "user": user})
}

func (u FileUpdate) check(ctx context.Context, tx pgx.Tx, f File) error {
	if u == (FileUpdate{}) {
		return fault.NothingToChange()
	}

	if u.FullFileName != nil {
		if err := checkFileName(*u.FullFileName); err != nil {
			return err
		}
	}

	if u.Container == nil || *u.Container == f.ContainerUUID {
		return nil
	}

	limits, err := pg.One[uploadLimits](ctx, tx, `
		select max_file_size, allowed_mime_types from storage.containers
		where uuid = @to and not deleting for key share`,
		pgx.StrictNamedArgs{"to": *u.Container})
	switch {
	case fault.Is(err, fault.NotFound):
		return fault.OnField(fault.Unprocessable, "container_uuid", "not_found", "must be a container of the project")
	case err != nil:
		return err
	case f.Size > limits.MaxFileSize:
		return fault.OnField(fault.Unprocessable, "container_uuid", "too_large",
			"must be a container that accepts %d bytes; this one accepts at most %d", f.Size, limits.MaxFileSize)
	}

	return limits.checkType(f.MimeType, "container_uuid")
}

// DeleteFile deletes a file of a container of project p. It fails with NotFound if it does not
// exist.
func DeleteFile(ctx context.Context, p *projectdb.Project, container, file uuid.UUID) (File, error) {
	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (File, error) {
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
func DeleteFolder(ctx context.Context, p *projectdb.Project, container uuid.UUID, folder string) (int64, error) {
	folder = strings.TrimSuffix(folder, "/")
	if err := checkFileName(folder); err != nil {
		return 0, fault.New(fault.NotFound, "the folder does not exist").WithCause(err)
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (int64, error) {
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
		if err != nil {
			return n, err
		}
		if n == 0 {
			return n, fault.New(fault.NotFound, "the folder does not exist")
		}

		return n, nil
	})
}

// DeleteFiles deletes files in the transaction that deletes the record they belong to. [Discard]
// removes their bytes. Files that do not exist are ignored.
func DeleteFiles(ctx context.Context, tx pgx.Tx, files []uuid.UUID) error {
	_, err := pg.Exec(ctx, tx, `
		with gone as (delete from storage.files where uuid = any(@files::uuid[]) returning blob_uuid)
		insert into storage.discarded (blob_uuid) select blob_uuid from gone`,
		pgx.StrictNamedArgs{"files": files})
	return err
}

// storedFile is a file and the UUID of its blob.
type storedFile struct {
	File
	BlobUUID uuid.UUID
}

// open opens the blob of the file that find returns. It calls find again if the blob is missing,
// since the file may have been replaced or deleted in between. A blob that is really missing or
// truncated is an Internal error, not the client's mistake.
func open(
	ctx context.Context, p *projectdb.Project, store *blob.Store, find func() (storedFile, error),
) (File, *Content, error) {
	var missing uuid.UUID
	for {
		f, err := find()
		if err != nil {
			return File{}, nil, err
		}

		content, size, err := store.Open(ctx, blobKey(p.UUID, f.BlobUUID))
		switch {
		case fault.Is(err, fault.NotFound) && f.BlobUUID != missing:
			missing = f.BlobUUID
			continue
		case fault.Is(err, fault.NotFound):
			return File{}, nil, &fault.Error{Err: fmt.Errorf("file %s is missing its bytes: %w", f.UUID, err)}
		case err != nil:
			return File{}, nil, fmt.Errorf("open file %s: %w", f.UUID, err)
		case size != f.Size:
			content.Close()
			return File{}, nil, fmt.Errorf("file %s has %d of %d bytes", f.UUID, size, f.Size)
		}

		checked, err := newContent(f.File, content, store.VerifiedFile(content, f.SHA256))
		return f.File, checked, err
	}
}

// blobKey returns the key of a blob. The database stores the UUID of the blob only, so that rows
// restored from elsewhere cannot reach blobs of another project.
func blobKey(project, blob uuid.UUID) string { return projectdb.FileKey(project, blob) }
