package object

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// NewFile describes a file to create.
type NewFile struct {
	FullFileName string    // up to 1024 bytes; slashes separate folders; no "..", "." or empty part
	MimeType     string    // claimed by the client; detected from the content if invalid
	Content      io.Reader // read once, to the end
	Length       int64     // bytes announced by the client; 0: unknown
	Most         int64     // limit in bytes besides the container's; 0: none

	// An application's values, which come with each download.
	CacheControl string
	Metadata     []byte // a JSON object; nil means none
	Headers      Headers

	// Upsert replaces an existing file with the name, which keeps the UUID. Check is called with
	// it, or nil, before the bytes and after them, and aborts the upload with its error.
	Upsert bool
	Check  func(present *File) error // nil: none

	Ticket         uuid.UUID // ticket of a signed upload, see [SignUpload]; may be zero
	MetadataHeader string    // Upload-Metadata of a resumable upload
}

// errNotCreated ends an upload that did not fail.
var errNotCreated = errors.New("the file was not created")

// asyncCommit turns off synchronous_commit for a transaction. The recorded upload survives a server
// crash, which does not affect PostgreSQL. If the row is lost because the machine crashes, the blob
// is an orphan. The commit that creates the file flushes this one too.
const asyncCommit = `set_config('synchronous_commit', 'off', true)`

// CreateFile stores a file in a container. It asks the policies before the first byte and again
// after the last one. It holds no connection while the bytes arrive. On success both bytes and row
// are durable; on failure neither exists. discard reports whether it replaced bytes, which
// [Discard] must remove.
//
// It fails with NotFound if the container does not exist, with Forbidden if the policies refuse the
// file, with Unprocessable or Conflict on full_file_name if the name is invalid or taken, with
// TooLarge on file beyond the container's limit or if the project's database is full, and with the
// content's error, wrapped.
func CreateFile(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, to ContainerRef, n NewFile,
) (f File, discard bool, err error) {
	var ends completion
	if n.Ticket != uuid.Nil {
		ends = ticket(n.Ticket)
	}

	return createFile(ctx, p, store, a, to, n, ends)
}

// createFile is [CreateFile] for an upload that ends a completion, which may be nil.
func createFile(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, to ContainerRef, n NewFile,
	ends completion,
) (f File, discard bool, err error) {
	u, err := newUpload(p, store, a, to, n, ends)
	if err != nil {
		return File{}, false, err
	}

	limits, err := u.begin(ctx)
	if err != nil {
		return File{}, false, err
	}

	if err = u.receive(ctx, limits); err == nil {
		f, err = u.commit(ctx)
	}
	if err != nil {
		f, err = u.cleanUp(ctx, err)
	}

	return f, u.replacedBlob != uuid.Nil, err
}

// CopyFile copies a file, within a container or to another one. The copy has the source's type, and
// the source's metadata unless n brings its own. It fails with NotFound if the policies hide the
// source, and otherwise as [CreateFile] does.
func CopyFile(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, from FileRef, to ContainerRef,
	n NewFile,
) (f File, discard bool, err error) {
	source, content, err := OpenFile(ctx, p, store, a, from)
	if err != nil {
		return File{}, false, err
	}
	defer content.Close()

	n.Content, n.Length = content, source.Size
	if n.MimeType == "" {
		n.MimeType = source.MimeType
	}
	if n.CacheControl == "" {
		n.CacheControl = source.CacheControl()
	}
	if n.Metadata == nil {
		n.Metadata = source.UserMetadata
	}
	n.Headers = source.Headers

	return CreateFile(ctx, p, store, a, to, n)
}

// CheckUpload fails as [CreateFile] does before the first byte, if the actor may not store the file
// now.
func CheckUpload(ctx context.Context, p *projectdb.Project, a actor.Actor, to ContainerRef, n NewFile) error {
	u, err := newUpload(p, nil, a, to, n, nil)
	if err != nil {
		return err
	}
	if err := u.checkRights(ctx); err != nil || n.Upsert {
		return err
	}

	_, err = GetFile(ctx, p, actor.Service(), FileRef{Container: to.UUID, Name: n.FullFileName})
	if err == nil {
		return nameTaken()
	}

	return fault.Ignore(err, fault.NotFound)
}

// upload is a file upload in progress. Its blob is recorded in storage.uploads from before the
// first byte until the transaction that creates the file, so that a crash leaves no unknown blob.
type upload struct {
	project   *projectdb.Project
	store     *blob.Store
	actor     actor.Actor
	container ContainerRef
	in        NewFile
	ends      completion // nil: none
	blob      uuid.UUID

	file     File  // values so far
	present  *File // file to replace, in the version that the policies decided on; nil: none
	inserted bool  // the row was inserted; the commit may have been sent

	replacedBlob uuid.UUID // zero if the file is new
}

func newUpload(
	p *projectdb.Project, store *blob.Store, a actor.Actor, to ContainerRef, n NewFile, ends completion,
) (*upload, error) {
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

	return &upload{project: p, store: store, actor: a, container: to, in: n, ends: ends, blob: blobUUID,
		file: File{UUID: id, ContainerUUID: to.UUID, FullFileName: n.FullFileName, MimeType: claimedType(n.MimeType),
			Size: max(n.Length, 0)}}, nil
}

// values adds the arguments for columns that come with the upload to args.
func (u *upload) values(args pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	args["owner"], args["owner_id"] = ownerUUID(u.actor), optional(ownerID(u.actor))
	args["cache_control"], args["metadata"] = optional(u.in.CacheControl), optional(string(u.in.Metadata))
	args["headers"], args["type"], args["size"] = u.in.Headers, u.file.MimeType, u.file.Size
	args["sha256"] = u.file.SHA256

	return args
}

// ask finds the file to be replaced, and asks whether the actor may insert the file and replace
// that one. Who may not insert a file does not learn whether there is one.
func (u *upload) ask(ctx context.Context) error {
	u.present = nil
	if u.in.Upsert {
		existing, err := pg.One[File](ctx, u.project.Trusted(), `
			select `+fileColumns+` from storage.files where `+byName,
			pgx.StrictNamedArgs{"container": u.container.UUID, "name": u.file.FullFileName})
		if fault.Ignore(err, fault.NotFound) != nil {
			return err
		}
		if err == nil {
			u.present = &existing
		}
	}

	if u.actor.BypassesPolicies() {
		return nil
	}

	args := u.values(pgx.StrictNamedArgs{"uuid": u.file.UUID, "container": u.container.UUID, "bucket": u.container.ID,
		"name": u.file.FullFileName, "blob": u.blob})
	if _, err := ask(ctx, u.project, u.actor, `
		insert into storage.objects (uuid, container_uuid, bucket_id, full_file_name, owner, owner_id, cache_control,
			user_metadata, headers, mime_type, size, sha256, blob_uuid, created_at, updated_at)
		values (@uuid, @container, @bucket, @name, @owner, @owner_id, @cache_control, @metadata, @headers, @type, @size,
			@sha256, @blob, now(), now())`,
		args); err != nil || u.present == nil {
		return err
	}

	delete(args, "uuid")
	delete(args, "bucket")
	delete(args, "blob")
	v, err := askForOne(ctx, u.project, u.actor, `
		update storage.objects
		set owner = @owner, owner_id = @owner_id, cache_control = @cache_control, user_metadata = @metadata,
		    headers = @headers, mime_type = @type, size = @size, sha256 = coalesce(@sha256, sha256), updated_at = now()
		where uuid = (select uuid from storage.objects where `+byName+`)`, args)
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Forbidden, "new row violates row-level security policy").WithCause(err)
	}

	u.present.UUID, u.present.UpdatedAt = v.UUID, v.UpdatedAt
	return err
}

// checkRights checks the name, and asks whether the actor may store the file.
func (u *upload) checkRights(ctx context.Context) error {
	if err := checkFileName(u.file.FullFileName); err != nil {
		return err
	}
	return u.ask(ctx)
}

// nameExists is a condition: container c has a file with a name. It compares the first name not
// before it, for which PostgreSQL always reads the name index, see [byName].
const nameExists = `coalesce((
	select f.full_file_name from storage.files f where f.container_uuid = c.uuid and f.full_file_name >= @name
	order by f.full_file_name limit 1) = @name, false)`

// begin checks the conditions known before the bytes arrive, records the upload, and returns the
// limits.
func (u *upload) begin(ctx context.Context) (limits uploadLimits, err error) {
	if invalid := checkFileName(u.file.FullFileName); invalid != nil {
		// NotFound takes precedence.
		if _, err := GetContainer(ctx, u.project, actor.Service(), u.container); err != nil {
			return limits, err
		}
		return limits, invalid
	}

	if err := u.ask(ctx); err != nil {
		return limits, err
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
		pgx.StrictNamedArgs{"container": u.container.UUID, "name": u.file.FullFileName,
			"blob": u.blob, "replace": u.in.Upsert,
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

// receive stores the bytes.
func (u *upload) receive(ctx context.Context, limits uploadLimits) error {
	if err := u.checkPresent(u.present); err != nil {
		return err
	}

	if u.in.Most > 0 {
		limits.MaxFileSize = min(limits.MaxFileSize, u.in.Most)
	}
	if u.present != nil {
		limits.FreeBytes += u.present.Size
	}
	if err := limits.checkLength(u.in.Length); err != nil {
		return err
	}

	content, mimeType, err := mediaType(u.in.MimeType, u.in.Content)
	if err != nil {
		return fmt.Errorf("receive file %s: %w", u.file.UUID, err)
	}

	if err := limits.checkType(mimeType, "file"); err != nil {
		return err
	}

	object, err := limits.put(ctx, u.store, blobKey(u.project.UUID, u.blob), content)
	if err != nil {
		return fmt.Errorf("receive file %s: %w", u.file.UUID, err)
	}

	u.file.MimeType, u.file.Size, u.file.SHA256 = mimeType, object.Size, object.SHA256
	return nil
}

// commit creates the file in a separate transaction. It asks the policies first, and again if the
// file to be replaced changes concurrently.
func (u *upload) commit(ctx context.Context) (File, error) {
	for range maxReplaceAttempts {
		if !u.actor.BypassesPolicies() {
			if err := u.ask(ctx); err != nil {
				return File{}, err
			}
		}

		create := u.createInTx
		if !u.in.Upsert && u.ends == nil {
			create = u.insertAtOnce
		}

		f, err := create(ctx)
		if !errors.Is(err, errFileChanged) {
			return f, err
		}
	}

	return File{}, errContention
}

// uploadExpired is the failure for an upload whose record the sweep has deleted.
func uploadExpired() *fault.Error {
	return fault.New(fault.Conflict, "the upload took too long and was discarded; send the file again").
		WithCode("expired")
}

// partExpired is [uploadExpired] for a part.
func partExpired() *fault.Error {
	return fault.New(fault.Conflict, "the part took too long and was discarded; send it again").WithCode("expired")
}

// fileNameTaken turns a unique violation on a file's name into Conflict.
func fileNameTaken(err error) error {
	if pg.Violates(err, "files_full_file_name_key") {
		return nameTaken().WithCause(err)
	}
	return err
}

func nameTaken() *fault.Error {
	return fault.OnField(fault.Conflict, "full_file_name", "already_exists",
		"is taken by another file of the container")
}

func tooLarge(limit int64) *fault.Error {
	return fault.OnField(fault.TooLarge, "file", "too_large", "must be at most %d bytes", limit)
}
