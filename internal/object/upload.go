package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// NewFile describes a file to create.
type NewFile struct {
	FullFileName string    // up to 1024 bytes; slashes separate folders; no "..", "." or empty part
	MimeType     string    // claimed by the client; detected from the content if invalid
	Content      io.Reader // read once, to its end
	Most         int64     // limit in bytes besides that of the container; 0: none

	Length  int64     // bytes announced by the client; 0: unknown
	Resumed uuid.UUID // the resumable upload that becomes the file; may be zero
	Ticket  uuid.UUID // of a signed upload, see [SignUpload]; may be zero

	Multipart uuid.UUID // the multipart upload that becomes the file; may be zero

	MetadataHeader string // Upload-Metadata of a resumable upload
}

// errNotCreated ends an upload that did not fail.
var errNotCreated = errors.New("the file was not created")

// asyncCommit turns off synchronous_commit for a transaction. The recorded upload survives a crash
// of the server, which does not affect PostgreSQL. If the row is lost in a crash of the machine,
// the blob is an orphan. The commit that creates the file flushes this one too.
const asyncCommit = `set_config('synchronous_commit', 'off', true)`

// cleanupTimeout limits the cleanup after a failed upload, which continues if the client
// disconnects.
const cleanupTimeout = 10 * time.Second

// CreateFile stores a file in a container of project p on behalf of user. It holds no connection
// while the bytes arrive. On success both bytes and row are durable; on failure neither exists.
//
// It fails with NotFound if the container does not exist, with Unprocessable or Conflict on
// full_file_name if the name is invalid or taken, with TooLarge on file beyond the container's
// limit or if the project's database is full, and with the wrapped error of the content.
func CreateFile(
	ctx context.Context, p *projectdb.Project, store *blob.Store, user, container uuid.UUID, n NewFile,
) (File, error) {
	u, err := newUpload(p, store, user, container, n)
	if err != nil {
		return File{}, err
	}

	limits, err := u.begin(ctx)
	if err != nil {
		return File{}, err
	}

	file, err := u.transfer(ctx, n, limits)
	if err != nil {
		return u.cleanUp(ctx, err)
	}

	return file, nil
}

// Sweep cleans up uploads to project p that started more than olderThan ago and were interrupted by
// a crash of the server. Uploads that take longer fail. It also deletes expired signed,
// resumable and multipart uploads. It returns the number of deleted blobs.
func Sweep(ctx context.Context, p *projectdb.Project, store *blob.Store, olderThan time.Duration) (int, error) {
	blobs, err := pg.Values[uuid.UUID](ctx, p.Trusted(), `
		select blob_uuid from storage.uploads where started_at < now() - @age::interval`,
		pgx.StrictNamedArgs{"age": olderThan})
	if err != nil {
		return 0, err
	}

	for _, expired := range []string{
		`delete from storage.signed_uploads where expires_at < now()`,
		`delete from storage.resumable_uploads where expires_at < now()`,
		`delete from storage.multipart_uploads where expires_at < now()`,
	} {
		if _, err := pg.Exec(ctx, p.Trusted(), expired); err != nil {
			return 0, err
		}
	}

	for i, b := range blobs {
		if _, err := discard(ctx, p, store, b); err != nil {
			return i, fmt.Errorf("sweep blob %s: %w", b, err)
		}
	}

	return len(blobs), nil
}

// upload is a file upload in progress. Its blob is recorded in storage.uploads from before the
// first byte until the transaction that creates the file, so that a crash leaves no unknown blob.
type upload struct {
	project     *projectdb.Project
	store       *blob.Store
	user        uuid.UUID
	ticket      uuid.UUID
	resumed     uuid.UUID
	multipart   uuid.UUID
	replacement *replacement // nil: an existing file is a conflict
	blob        uuid.UUID
	owned       ownership
	file        File // values known so far
	sha256      []byte
	inserted    bool // the row was inserted; the commit may have been sent
}

func newUpload(p *projectdb.Project, store *blob.Store, user, container uuid.UUID, n NewFile) (*upload, error) {
	if err := checkDatabase(p); err != nil {
		return nil, err
	}

	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}

	blobUUID, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}

	return &upload{project: p, store: store, user: user, ticket: n.Ticket, resumed: n.Resumed,
		multipart: n.Multipart, blob: blobUUID,
		file: File{UUID: id, ContainerUUID: container, FullFileName: n.FullFileName}}, nil
}

// nameExists is a condition: container c has a file with a name. It compares the first name from
// that on, for which PostgreSQL always reads the index of names, see [named].
const nameExists = `coalesce((
	select f.full_file_name from storage.files f where f.container_uuid = c.uuid and f.full_file_name >= @name
	order by f.full_file_name limit 1) = @name, false)`

// begin checks the conditions known before the bytes arrive, records the upload, and returns its
// limits.
func (u *upload) begin(ctx context.Context) (limits uploadLimits, err error) {
	if invalid := checkFileName(u.file.FullFileName); invalid != nil {
		// NotFound takes precedence.
		if _, err := GetContainer(ctx, u.project, u.file.ContainerUUID); err != nil {
			return limits, err
		}
		return limits, invalid
	}

	container, err := pg.One[struct {
		uploadLimits
		Taken                 bool
		QuotaBytes, QuotaRoom int64
	}](ctx, u.project.Trusted(), `
		with container as (
			select c.max_file_size, c.allowed_mime_types, not @replace and `+nameExists+` as taken
			from storage.containers c where c.uuid = @container and not c.deleting
		), noted as (
			insert into storage.uploads (blob_uuid) select @blob::uuid from container where not taken
			returning `+asyncCommit+`
		), quota as (
			select coalesce(max_bytes, @bytes) as quota_bytes,
			       greatest(coalesce(max_bytes, @bytes) - bytes, 0) as quota_room
			from storage.usage
		)
		select max_file_size, allowed_mime_types, taken, quota_bytes, quota_room from container, quota`,
		pgx.StrictNamedArgs{"container": u.file.ContainerUUID, "name": u.file.FullFileName,
			"blob": u.blob, "replace": u.replacement != nil,
			"bytes": DefaultQuotaBytes})
	if err != nil {
		return limits, err
	}

	if container.Taken {
		return limits, nameTaken()
	}

	container.uploadLimits.MaxBytes, container.uploadLimits.FreeBytes = container.QuotaBytes, container.QuotaRoom
	return container.uploadLimits, nil
}

// transfer stores the bytes and creates the file.
func (u *upload) transfer(ctx context.Context, n NewFile, limits uploadLimits) (File, error) {
	if u.replacement != nil {
		if err := u.checkExisting(ctx); err != nil {
			return File{}, err
		}
	}

	if err := u.receive(ctx, n, limits); err != nil {
		return File{}, err
	}

	return u.commit(ctx)
}

// checkLength fails if the announced length exceeds the limits.
func (n NewFile) checkLength(limits uploadLimits) error {
	switch {
	case n.Length > limits.MaxFileSize:
		return tooLarge(limits.MaxFileSize)
	case n.Length > limits.FreeBytes:
		return overQuota(limits.MaxBytes)
	}

	return nil
}

// receive stores the bytes.
func (u *upload) receive(ctx context.Context, n NewFile, limits uploadLimits) error {
	if n.Most > 0 {
		limits.MaxFileSize = min(limits.MaxFileSize, n.Most)
	}

	limits.FreeBytes += u.replacement.freedBytes()
	if err := n.checkLength(limits); err != nil {
		return err
	}

	content, mimeType, err := mediaType(n.MimeType, n.Content)
	if err != nil {
		return fmt.Errorf("receive file %s: %w", u.file.UUID, err)
	}

	if err := limits.checkType(mimeType, "file"); err != nil {
		return err
	}

	stored, err := u.store.Put(ctx, blobKey(u.project.UUID, u.blob), content, min(limits.MaxFileSize, limits.FreeBytes))
	if fault.Is(err, fault.TooLarge) && limits.FreeBytes < limits.MaxFileSize {
		return overQuota(limits.MaxBytes).WithCause(err)
	}
	if fault.Is(err, fault.TooLarge) {
		return tooLarge(limits.MaxFileSize).WithCause(err)
	}
	if err != nil {
		return fmt.Errorf("receive file %s: %w", u.file.UUID, err)
	}

	u.file.MimeType, u.file.Size, u.sha256 = mimeType, stored.Size, stored.SHA256
	return nil
}

// commit creates the file in a transaction of its own.
func (u *upload) commit(ctx context.Context) (File, error) {
	if u.replacement == nil && u.ticket == uuid.Nil && u.resumed == uuid.Nil && u.multipart == uuid.Nil {
		file, err := u.insertAtOnce(ctx)
		if !fault.Is(err, fault.NotFound) {
			return file, err
		}
		// A condition does not hold; the following statements find it.
	}

	var file File
	err := u.project.InTx(ctx, func(tx pgx.Tx) (err error) {
		if file, err = u.create(ctx, tx); err != nil {
			return err
		}

		if u.replacement.replacedBlob() == uuid.Nil {
			audit.CreatedUUID(ctx, file.UUID)
		}

		return nil
	})
	return file, err
}

// create creates the file if the container still exists and still accepts it.
func (u *upload) create(ctx context.Context, tx pgx.Tx) (File, error) {
	deleted, err := pg.Exec(ctx, tx, `delete from storage.uploads where blob_uuid = @blob`,
		pgx.StrictNamedArgs{"blob": u.blob})
	if err != nil {
		return File{}, err
	}

	if deleted == 0 {
		return File{}, fault.New(fault.Conflict, "the upload took too long and was discarded; send the file again").
			WithCode("expired")
	}

	limits, err := pg.One[uploadLimits](ctx, tx, `
		select max_file_size, allowed_mime_types from storage.containers
		where uuid = @container and not deleting for key share`,
		pgx.StrictNamedArgs{"container": u.file.ContainerUUID})
	if err != nil {
		return File{}, err
	}

	if u.file.Size > limits.MaxFileSize {
		return File{}, tooLarge(limits.MaxFileSize)
	}

	if err := limits.checkType(u.file.MimeType, "file"); err != nil {
		return File{}, err
	}
	if err := useTicket(ctx, tx, u.ticket); err != nil {
		return File{}, err
	}
	if err := completeResumable(ctx, tx, u.resumed, u.file.UUID); err != nil {
		return File{}, err
	}

	if err := completeMultipart(ctx, tx, u.multipart, u.file.UUID); err != nil {
		return File{}, err
	}

	if u.replacement != nil {
		f, err := u.insertOrReplace(ctx, tx)
		if err == nil {
			err = recordMultipartFile(ctx, tx, u.multipart, f.UUID)
		}

		return f, err
	}

	file, err := u.insert(ctx, tx)
	if fault.Is(err, fault.NotFound) {
		return File{}, nameTaken().WithCause(err)
	}

	if err == nil {
		err = checkQuota(ctx, tx)
	}

	u.inserted = err == nil
	return file, err
}

// insert inserts the row of the file. It fails with NotFound if the name is taken.
func (u *upload) insert(ctx context.Context, tx pgx.Tx) (File, error) {
	return pg.One[File](ctx, tx, `
		insert into storage.files
			(uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by,
			 owner, owner_id, cache_control, user_metadata, headers)
		values (@id, @container, @name, @type, @size, @sha256, @blob, @user, @user,
			@owner, @owner_id, @cache_control, @metadata, @headers)
		on conflict on constraint files_full_file_name_key do nothing
		returning `+fileColumns,
		u.owned.arguments(pgx.StrictNamedArgs{"id": u.file.UUID, "container": u.file.ContainerUUID,
			"name": u.file.FullFileName, "type": u.file.MimeType, "size": u.file.Size, "sha256": u.sha256,
			"blob": u.blob, "user": u.user}))
}

// insertAtOnce creates the file in one round trip. It fails with NotFound unless the upload, the
// container and its limits allow it, with Conflict if the name is taken, and with TooLarge beyond
// the quota. It counts the file instead of the trigger files_inserted, in the rows of the container
// and the project, so the locks end before the flush.
func (u *upload) insertAtOnce(ctx context.Context) (File, error) {
	audit.CreatedUUID(ctx, u.file.UUID)
	plain, family := typesOf(u.file.MimeType)

	file, err := projectdb.ChangeOne[File](ctx, u.project, audit.Change{
		Lock:     `select from storage.containers where uuid = @container for no key update`,
		LockArgs: pgx.StrictNamedArgs{"container": u.file.ContainerUUID},
		With: `
			note as materialized (
				select blob_uuid from storage.uploads where blob_uuid = @blob for update
			), container as (
				update storage.containers
				set total_files = total_files + 1, total_size = total_size + @size, pending_changes = pending_changes + 1
				where uuid = @container and not deleting and max_file_size >= @size
				  and (allowed_mime_types = '{}' or allowed_mime_types && array[@type_only, @family]::text[])
				  and exists (select from note)
				returning uuid, id, set_config('socle.counted', 'on', true)
			), inserted as (
				insert into storage.files
					(uuid, container_uuid, bucket_id, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by,
					owner, owner_id, cache_control, user_metadata, headers)
				select @id, c.uuid, c.id, @name, @type, @size, @sha256, @blob, @user, @user,
					@owner, @owner_id, @cache_control, @metadata, @headers
				from container c
				returning *
			), noted as (
				insert into storage.sorted_pending
					(container_uuid, change, full_file_name, mime_type, size, created_at, updated_at, file_uuid)
				select container_uuid, 1, full_file_name, mime_type, size, created_at, updated_at, uuid from inserted
			), project as (
				update storage.usage set files = files + 1, bytes = bytes + @size where exists (select from inserted)
				returning case when files > coalesce(max_files, @files) or bytes > coalesce(max_bytes, @bytes)
					then storage.check_quota(@files, @bytes) end
			), completed as (
				delete from storage.uploads u using inserted i where u.blob_uuid = i.blob_uuid
			)`,
		SQL: `select ` + fileColumns + ` from inserted`,
		Args: u.owned.arguments(pgx.StrictNamedArgs{"id": u.file.UUID, "container": u.file.ContainerUUID,
			"name": u.file.FullFileName, "type": u.file.MimeType, "type_only": plain, "family": family,
			"size": u.file.Size, "sha256": u.sha256, "blob": u.blob, "user": u.user,
			"files": DefaultQuotaFiles, "bytes": DefaultQuotaBytes}),
		EarlyRelease: true,
	})

	u.inserted = err == nil || fault.Of(err).Code == pg.OutcomeUnknown

	switch {
	case pg.Violates(err, "files_full_file_name_key"):
		return file, nameTaken().WithCause(err)
	case pg.Violates(err, "usage_files_quota"), pg.Violates(err, "usage_bytes_quota"):
		return file, quotaExceededBy(ctx, u.project, err)
	}

	return file, err
}

// cleanUp cleans up after a failed upload. It returns the file if it exists nevertheless, since a
// commit can succeed although its reply was lost.
func (u *upload) cleanUp(ctx context.Context, failure error) (File, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()

	// No row to look for, and perhaps no database any more: the project may have been deleted.
	if !u.inserted {
		if err := u.store.Delete(ctx, blobKey(u.project.UUID, u.blob)); err != nil {
			return File{}, errors.Join(failure, fmt.Errorf("discard blob %s: %w", u.blob, err))
		}
	}

	exists, err := discard(ctx, u.project, u.store, u.blob)
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

// discard deletes a blob unless a file, a variant or a part refers to it, and reports whether one
// does.
func discard(ctx context.Context, p *projectdb.Project, store *blob.Store, b uuid.UUID) (referenced bool, err error) {
	err = pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		// The delete waits for a pending commit of the upload, so that the next statement sees its
		// file or part.
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

func nameTaken() *fault.Error {
	return fault.OnField(fault.Conflict, "full_file_name", "already_exists",
		"is taken by another file of the container")
}

func tooLarge(limit int64) *fault.Error {
	return fault.OnField(fault.TooLarge, "file", "too_large", "must be at most %d bytes", limit)
}
