package object

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// File describes a file in a container.
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

// ETag returns the strong entity tag of the file's bytes, which is derived from their checksum.
func (f File) ETag() string {
	return `"` + base64.RawURLEncoding.EncodeToString(f.SHA256[:16]) + `"`
}

const fileColumns = `
	uuid, container_uuid, full_file_name, mime_type, size, sha256, created_at, created_by, updated_at, updated_by,
	headers`

// StoredFile is a file with its blob, and with the values that an application stored with it.
type StoredFile struct {
	File
	BlobUUID     uuid.UUID
	Version      string  // changes with the blob
	Cache        *string `db:"cache_control"`
	UserMetadata []byte  // the application's JSON; nil if there is none
}

// CacheControl returns the Cache-Control header for a download by an application.
func (f StoredFile) CacheControl() string {
	if f.Cache == nil {
		return "no-cache"
	}
	return *f.Cache
}

const storedColumns = fileColumns + `, blob_uuid, version, cache_control, user_metadata`

// visibleColumns are storedColumns for an actor to whom policies apply.
const visibleColumns = `
	uuid, container_uuid, full_file_name, mime_type, size, sha256, created_at, ` + noUser + ` as created_by, updated_at,
	` + noUser + ` as updated_by, headers, blob_uuid, version, cache_control, user_metadata`

// FileRef identifies a file in a container: by UUID if there is one, or by name.
type FileRef struct {
	Container  uuid.UUID
	UUID       uuid.UUID
	Name       string
	OnlyPublic bool // only in a public container
}

// inUse is a condition on a file f: its container is not in deletion, and public if that is
// required.
const inUse = `exists (
	select from storage.containers c where c.uuid = f.container_uuid and not c.deleting and (c.is_public or not @public))`

// byName ends a statement that selects a container's file by name. The order makes every PostgreSQL
// plan read the name index. A plan from a time without files would read equal names from any index
// on the container, and so all its files.
const byName = `container_uuid = @container and full_file_name between @name and @name order by full_file_name limit 1`

// GetFile returns a file. It fails with NotFound if it does not exist or the policies hide it.
func GetFile(ctx context.Context, p *projectdb.Project, a actor.Actor, r FileRef) (StoredFile, error) {
	if r.UUID != uuid.Nil {
		return pg.One[StoredFile](ctx, p.Trusted(), `
			select `+storedColumns+` from storage.files f where uuid = @file and container_uuid = @container and `+inUse,
			pgx.StrictNamedArgs{"file": r.UUID, "container": r.Container, "public": r.OnlyPublic})
	}
	if err := checkFileName(r.Name); err != nil {
		return StoredFile{}, fault.New(fault.NotFound, "the file does not exist").WithCause(err)
	}

	if !a.BypassesPolicies() {
		return pg.One[StoredFile](ctx, a.On(p.Questions()), `
			select `+visibleColumns+` from storage.objects where `+byName,
			pgx.StrictNamedArgs{"container": r.Container, "name": r.Name})
	}

	return pg.One[StoredFile](ctx, p.Trusted(), `
		select `+storedColumns+` from storage.files f where `+inUse+` and `+byName,
		pgx.StrictNamedArgs{"container": r.Container, "name": r.Name, "public": r.OnlyPublic})
}

// OpenFile is [GetFile] with the file's content, which the caller closes.
func OpenFile(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, r FileRef,
) (StoredFile, *Content, error) {
	return openContent(ctx, p, store, func() (StoredFile, error) { return GetFile(ctx, p, a, r) })
}

// FileUpdate holds the values to change; nil leaves a value unchanged. An application sets both.
type FileUpdate struct {
	FullFileName *string
	Container    *ContainerRef // the destination
}

// UpdateFile renames a file, or moves it to another container. It copies no bytes. It fails with
// NotFound if the file does not exist or the policies hide it, with Forbidden if they refuse the
// change, with Unprocessable on every invalid field, including the destination's limits, and with
// Conflict on full_file_name if the name is taken there.
func UpdateFile(
	ctx context.Context, p *projectdb.Project, a actor.Actor, r FileRef, u FileUpdate,
) (File, error) {
	for range maxReplaceAttempts {
		v, err := u.ask(ctx, p, a, r)
		if err != nil {
			return File{}, err
		}

		f, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (File, error) {
			f, err := lockFile(ctx, tx, r)
			switch {
			case v != nil && (fault.Is(err, fault.NotFound) || (err == nil && !v.matches(f))):
				return f, errFileChanged
			case err != nil:
				return f, err
			}

			if err := u.check(ctx, tx, f); err != nil {
				return f, err
			}

			return u.apply(ctx, tx, a.UserUUID(), f.UUID)
		})
		if !errors.Is(err, errFileChanged) {
			return f, fileNameTaken(err)
		}
	}

	return File{}, errContention
}

// lockFile returns a file and locks the row.
func lockFile(ctx context.Context, tx pgx.Tx, r FileRef) (File, error) {
	if r.UUID != uuid.Nil {
		return pg.One[File](ctx, tx, `
			select `+fileColumns+`
			from storage.files where uuid = @file and container_uuid = @container for no key update`,
			pgx.StrictNamedArgs{"file": r.UUID, "container": r.Container})
	}

	return pg.One[File](ctx, tx, `select `+fileColumns+` from storage.files where `+byName+` for no key update`,
		pgx.StrictNamedArgs{"container": r.Container, "name": r.Name})
}

// ask asks whether the policies allow to rename and move the file. It returns the version they
// decided on; nil if no policies apply.
func (u FileUpdate) ask(ctx context.Context, p *projectdb.Project, a actor.Actor, r FileRef) (*version, error) {
	if a.Member {
		return nil, nil
	}
	if err := checkFileName(*u.FullFileName); err != nil { // takes precedence for applications
		return nil, err
	}
	if a.BypassesPolicies() {
		return nil, nil
	}

	v, err := askForOne(ctx, p, a, `
		update storage.objects set container_uuid = @to, bucket_id = @bucket, full_file_name = @destination, updated_at = now()
		where uuid = (select uuid from storage.objects where `+byName+`)`,
		pgx.StrictNamedArgs{"container": r.Container, "name": r.Name, "to": u.Container.UUID, "bucket": u.Container.ID,
			"destination": *u.FullFileName})

	return &v, fileNameTaken(err)
}

func (u FileUpdate) apply(ctx context.Context, tx pgx.Tx, user, file uuid.UUID) (File, error) {
	var to *uuid.UUID
	if u.Container != nil {
		to = &u.Container.UUID
	}

	return pg.One[File](ctx, tx, `
		update storage.files
		set full_file_name = coalesce(@name, full_file_name), container_uuid = coalesce(@to, container_uuid),
		    updated_by = @user, updated_at = now()
		where uuid = @file
		returning `+fileColumns,
		pgx.StrictNamedArgs{"file": file, "name": u.FullFileName, "to": to, "user": user})
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

	if u.Container == nil || u.Container.UUID == f.ContainerUUID {
		return nil
	}

	limits, err := lockLimits(ctx, tx, u.Container.UUID)
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

// DeleteFile deletes a file from a container. It fails with NotFound if it does not exist.
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

// DeleteFilesByName deletes the named files from a container as far as the policies allow, and
// returns those deleted. names are at most 1000. [Discard] removes their bytes.
func DeleteFilesByName(
	ctx context.Context, p *projectdb.Project, a actor.Actor, container uuid.UUID, names []string,
) ([]File, error) {
	var ids []uuid.UUID
	var times []any
	if !a.BypassesPolicies() {
		versions, err := ask(ctx, p, a,
			`delete from storage.objects where container_uuid = @container and full_file_name = any(@names)`,
			pgx.StrictNamedArgs{"container": container, "names": names})
		if err != nil {
			return nil, err
		}

		for _, v := range versions {
			ids, times = append(ids, v.UUID), append(times, v.UpdatedAt)
		}
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) ([]File, error) {
		return pg.All[File](ctx, tx, `
			with gone as (
				delete from storage.files f where container_uuid = @container and full_file_name = any(@names)
				  and (@all or (f.uuid, f.updated_at) in (select * from unnest(@ids::uuid[], @times::timestamptz[])))
				returning *
			), noted as (
				insert into storage.discarded (blob_uuid) select blob_uuid from gone
			)
			select `+fileColumns+` from gone order by full_file_name`,
			pgx.StrictNamedArgs{"container": container, "names": names, "all": a.BypassesPolicies(), "ids": ids,
				"times": times})
	})
}

// DeleteFolder deletes all files in a container below a folder in one transaction and returns their
// number. It fails with NotFound if the container does not exist or the folder is empty.
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

// openContent opens the blob for the file that find returns. It calls find again if the blob is
// missing, since the file may have been replaced or deleted in between. A blob that is really
// missing or truncated is an Internal error, not the client's mistake.
func openContent(
	ctx context.Context, p *projectdb.Project, store *blob.Store, find func() (StoredFile, error),
) (StoredFile, *Content, error) {
	var missing uuid.UUID
	for {
		f, err := find()
		if err != nil {
			return StoredFile{}, nil, err
		}

		content, size, err := store.Open(ctx, blobKey(p.UUID, f.BlobUUID))
		switch {
		case fault.Is(err, fault.NotFound) && f.BlobUUID != missing:
			missing = f.BlobUUID
			continue
		case fault.Is(err, fault.NotFound):
			return StoredFile{}, nil, &fault.Error{Err: fmt.Errorf("file %s is missing its bytes: %w", f.UUID, err)}
		case err != nil:
			return StoredFile{}, nil, fmt.Errorf("open file %s: %w", f.UUID, err)
		case size != f.Size:
			content.Close()
			return StoredFile{}, nil, fmt.Errorf("file %s has %d of %d bytes", f.UUID, size, f.Size)
		}

		reader, err := newContent(f.File, content, store.VerifiedFile(content, f.SHA256))
		return f, reader, err
	}
}

// blobKey returns the key of a blob. The database stores only the blob's UUID, so rows restored
// from elsewhere cannot reach another project's blobs.
func blobKey(project, blob uuid.UUID) string { return projectdb.FileKey(project, blob) }
