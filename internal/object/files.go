package object

import (
	"context"
	"fmt"
	"io"
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
}

const fileColumns = `uuid, container_uuid, full_file_name, mime_type, size, created_at, created_by, updated_at, updated_by`

// fileOrders are the members that a list of files can be sorted by.
var fileOrders = map[string]string{
	"fullFileName": "full_file_name", "size": "size", "mimeType": "mime_type", "createdAt": "created_at", "updatedAt": "updated_at",
}

// ListFiles returns a page of the files of a container of project p, and how many files there are in all at
// the same moment. They can be sorted by fullFileName, size, mimeType, createdAt and updatedAt; text by code points.
// It fails with NotFound if there is no such container.
func ListFiles(ctx context.Context, p *tenant.Project, container uuid.UUID, page pg.Page) ([]File, int64, error) {
	var files []File
	var total int64
	err := pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		_, err := pg.Exec(ctx, tx, `set transaction isolation level repeatable read, read only`)
		if err != nil {
			return err
		}
		total, err = pg.Value[int64](ctx, tx, `
			select (select count(*) from storage.files f where f.container_uuid = c.uuid)
			from storage.containers c where c.uuid = @container and not c.deleting`,
			pgx.StrictNamedArgs{"container": container})
		if err != nil {
			return err
		}
		files, err = pg.All[File](ctx, tx, `
			select `+fileColumns+` from storage.files where container_uuid = @container`+page.Clause(fileOrders, "uuid"),
			pgx.StrictNamedArgs{"container": container})
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return files, total, nil
}

// OpenFile returns a file of a container of project p, and its bytes, which the caller closes.
// It fails with NotFound if there is none, another container's file included.
func OpenFile(ctx context.Context, p *tenant.Project, store *blob.Store, container, file uuid.UUID) (File, io.ReadSeekCloser, error) {
	f, err := pg.One[storedFile](ctx, p.Trusted(), `
		select `+fileColumns+`, blob_uuid from storage.files f
		where uuid = @file and container_uuid = @container
		  and not exists (select from storage.containers c where c.uuid = f.container_uuid and c.deleting)`,
		pgx.StrictNamedArgs{"file": file, "container": container})
	if err != nil {
		return File{}, nil, err
	}
	return f.open(ctx, p, store)
}

// OpenFileByName is [OpenFile] for a file's name. Who may read it is for the caller to decide,
// by the container's IsPublic.
func OpenFileByName(ctx context.Context, p *tenant.Project, store *blob.Store, container uuid.UUID, fullFileName string) (File, io.ReadSeekCloser, error) {
	if err := checkFileName(fullFileName); err != nil {
		return File{}, nil, fault.New(fault.NotFound, "there is no such file").Because(err)
	}
	f, err := pg.One[storedFile](ctx, p.Trusted(), `
		select `+fileColumns+`, blob_uuid from storage.files where full_file_name = @name and container_uuid = @container`,
		pgx.StrictNamedArgs{"name": fullFileName, "container": container})
	if err != nil {
		return File{}, nil, err
	}
	return f.open(ctx, p, store)
}

// storedFile is a file and where its bytes are.
type storedFile struct {
	File
	BlobUUID uuid.UUID
}

// open opens the bytes. That they are missing or cut short is our loss, not the client's mistake.
func (f storedFile) open(ctx context.Context, p *tenant.Project, store *blob.Store) (File, io.ReadSeekCloser, error) {
	content, size, err := store.Open(ctx, blobKey(p.UUID, f.BlobUUID))
	if fault.Is(err, fault.NotFound) {
		return File{}, nil, &fault.Error{Err: fmt.Errorf("file %s has lost its bytes: %w", f.UUID, err)}
	}
	if err != nil {
		return File{}, nil, fmt.Errorf("open file %s: %w", f.UUID, err)
	}
	if size != f.Size {
		content.Close()
		return File{}, nil, fmt.Errorf("file %s has %d bytes of %d", f.UUID, size, f.Size)
	}
	return f.File, content, nil
}

// blobKey returns the key of a blob, made of what we chose ourselves.
// The database names the blob alone: rows restored from elsewhere can't reach into another project.
func blobKey(project, blob uuid.UUID) string {
	id := blob.String()
	return fmt.Sprintf("projects/%s/files/%s/%s", project, id[:2], id)
}
