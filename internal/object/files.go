package object

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/blob"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/tenant"
)

// File describes a file of a container.
type File struct {
	UUID          uuid.UUID `json:"uuid" format:"uuid"`
	ContainerUUID uuid.UUID `json:"containerUuid" format:"uuid"`
	FullFileName  string    `json:"fullFileName" doc:"Its name, with the folders that it is in."`
	MimeType      string    `json:"mimeType"`
	Size          int64     `json:"size" doc:"Bytes."`
	CreatedAt     time.Time `json:"createdAt"`
	CreatedBy     uuid.UUID `json:"createdBy" format:"uuid"`
	UpdatedAt     time.Time `json:"updatedAt"`
	UpdatedBy     uuid.UUID `json:"updatedBy" format:"uuid"`
	SHA256        []byte    `json:"-" db:"sha256"`
}

// ETag returns the strong entity tag of the file's bytes, which is derived from their checksum.
func (f File) ETag() string {
	return `"` + base64.RawURLEncoding.EncodeToString(f.SHA256[:16]) + `"`
}

const fileColumns = `uuid, container_uuid, full_file_name, mime_type, size, sha256, created_at, created_by, updated_at, updated_by`

// OpenFile returns a file of a container of project p and its content, which the caller closes. It
// fails with NotFound if the container has no such file.
func OpenFile(
	ctx context.Context, p *tenant.Project, store *blob.Store, container, file uuid.UUID,
) (File, *Content, error) {
	return open(ctx, p, store, fileByUUID(ctx, p, container, file))
}

func fileByUUID(ctx context.Context, p *tenant.Project, container, file uuid.UUID) func() (storedFile, error) {
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
	ctx context.Context, p *tenant.Project, store *blob.Store, container uuid.UUID, fullFileName string, member bool,
) (File, *Content, error) {
	find, err := fileByName(ctx, p, container, fullFileName, member)
	if err != nil {
		return File{}, nil, err
	}

	return open(ctx, p, store, find)
}

func fileByName(
	ctx context.Context, p *tenant.Project, container uuid.UUID, fullFileName string, member bool,
) (func() (storedFile, error), error) {
	if err := checkFileName(fullFileName); err != nil {
		return nil, fault.New(fault.NotFound, "there is no such file").Because(err)
	}

	return func() (storedFile, error) {
		return pg.One[storedFile](ctx, p.Trusted(), `
			select `+fileColumns+`, blob_uuid from storage.files f
			where full_file_name = @name and container_uuid = @container
			  and exists (select from storage.containers c where c.uuid = f.container_uuid and not c.deleting and (c.is_public or @member))`,
			pgx.StrictNamedArgs{"name": fullFileName, "container": container, "member": member})
	}, nil
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
	ctx context.Context, p *tenant.Project, store *blob.Store, find func() (storedFile, error),
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
			return File{}, nil, &fault.Error{Err: fmt.Errorf("file %s has lost its bytes: %w", f.UUID, err)}
		case err != nil:
			return File{}, nil, fmt.Errorf("open file %s: %w", f.UUID, err)
		case size != f.Size:
			content.Close()
			return File{}, nil, fmt.Errorf("file %s has %d bytes of %d", f.UUID, size, f.Size)
		}

		checked, err := contentOf(f.File, content, store.Witness(content, f.SHA256))
		return f.File, checked, err
	}
}

// blobKey returns the key of a blob. The database stores the UUID of the blob only, so that rows
// restored from elsewhere cannot reach blobs of another project.
func blobKey(project, blob uuid.UUID) string { return tenant.FileKey(project, blob) }
