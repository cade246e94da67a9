package object

import (
	"context"
	"errors"
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

// Limits of resumable uploads. Those on bytes bound everything else.
const (
	maxResumableUploads    = 10_000   // uploads in progress of a project
	smallResumablePart     = 64 << 10 // bytes
	maxSmallResumableParts = 1000     // smaller parts of an upload
)

// Resumable is a resumable upload. Each part is a blob of its own. The last part makes
// [FinishResumable] copy them into one blob and create the file. An upload expires one day after
// its last part; [Sweep] deletes it.
type Resumable struct {
	UUID          uuid.UUID
	ContainerUUID uuid.UUID
	FullFileName  string
	MimeType      string // as claimed by the client
	Size          int64  // bytes of the whole file; the upper limit while Deferred
	Deferred      bool   // the client sends the length later
	Offset        int64  // bytes received
	FileUUID      uuid.NullUUID
	ExpiresAt     time.Time

	MetadataHeader string // Upload-Metadata of the request that created it
}

const resumableColumns = `
	uuid, container_uuid, full_file_name, mime_type, size, deferred, file_uuid, expires_at, metadata_header`

// Finished reports whether the upload has just become complete, so that its file must be created
// and its parts be discarded.
func (r Resumable) Finished() bool { return r.Offset == r.Size && !r.Deferred && !r.FileUUID.Valid }

// CreateResumable starts a resumable upload of n.Length bytes to a container of project p. It fails
// as [CreateFile] does, as far as the announced values allow.
//
// Announced bytes count toward the quota. If n.Length is negative, the length is deferred and the
// received bytes count.
func CreateResumable(ctx context.Context, p *projectdb.Project, container uuid.UUID, n NewFile) (Resumable, error) {
	return createResumable(ctx, p, container, n, resumableOwnership{})
}

func createResumable(
	ctx context.Context, p *projectdb.Project, container uuid.UUID, n NewFile, o resumableOwnership,
) (Resumable, error) {
	if err := checkDatabase(p); err != nil {
		return Resumable{}, err
	}

	id, err := uuid.NewRandom()
	if err != nil {
		return Resumable{}, err
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Resumable, error) {
		audit.CreatedUUID(ctx, id)

		limits, err := pg.One[struct {
			uploadLimits
			Taken bool
		}](ctx, tx, `
			select max_file_size, allowed_mime_types, `+nameExists+` as taken
			from storage.containers c where uuid = @container and not deleting for key share`,
			pgx.StrictNamedArgs{"container": container, "name": n.FullFileName})
		if err != nil {
			return Resumable{}, err
		}

		if n.Most > 0 {
			limits.MaxFileSize = min(limits.MaxFileSize, n.Most)
		}

		claimed, size, deferred := claimedType(n.MimeType), n.Length, n.Length < 0
		if deferred {
			n.Length, size = 0, limits.MaxFileSize
		}

		invalid := checkFileName(n.FullFileName)
		switch {
		case invalid != nil:
		case n.Length > limits.MaxFileSize:
			invalid = tooLarge(limits.MaxFileSize)
		case limits.Taken && !o.upsert:
			invalid = nameTaken()
		case claimed != "" && !isActiveContent(claimed):
			invalid = limits.checkType(claimed, "file")
		}

		if invalid != nil {
			return Resumable{}, invalid
		}

		if err := checkPendingQuota(ctx, tx, n.Length); err != nil {
			return Resumable{}, err
		}
		if err := checkUploadsInProgress(ctx, tx); err != nil {
			return Resumable{}, err
		}

		return pg.One[Resumable](ctx, tx, `
			insert into storage.resumable_uploads
				(uuid, container_uuid, full_file_name, mime_type, size, deferred, application, upsert, owner_id,
				 cache_control, user_metadata, metadata_header)
			values (@id, @container, @name, @type, @size, @deferred, @application, @upsert, @owner_id,
				@cache_control, @metadata, @metadata_header)
			returning `+resumableColumns+`, 0::bigint as offset`,
			pgx.StrictNamedArgs{
				"id": id, "container": container, "name": n.FullFileName, "type": claimed, "size": size,
				"deferred": deferred, "application": o.application, "upsert": o.upsert,
				"owner_id": optional(o.owner), "cache_control": optional(o.cacheControl),
				"metadata": optional(string(o.metadata)), "metadata_header": n.MetadataHeader,
			})
	})
}

// checkUploadsInProgress fails with Conflict beyond the maximum. The caller has locked the usage
// row, so that the count is exact.
func checkUploadsInProgress(ctx context.Context, tx pgx.Tx) error {
	n, err := pg.Value[int64](ctx, tx, `
		select count(*) from (select from storage.resumable_uploads where file_uuid is null limit @max) u`,
		pgx.StrictNamedArgs{"max": maxResumableUploads})
	if err != nil || n < maxResumableUploads {
		return err
	}

	return fault.New(fault.Conflict, "the project has %d resumable uploads in progress", maxResumableUploads).
		WithCode("too_many_uploads")
}

// checkPendingQuota fails with TooLarge if existing files, pending uploads and extra further bytes
// exceed the quota. It locks the usage row.
func checkPendingQuota(ctx context.Context, tx pgx.Tx, extra int64) error {
	q, err := pg.One[Quota](ctx, tx, `select `+quotaColumns+` from storage.usage for update`, quotaDefaults)
	if err != nil {
		return err
	}

	pending, err := pg.Value[int64](ctx, tx, `
		select (coalesce(sum(case
			when deferred then (select sum(p.size) from storage.upload_parts p where p.upload_uuid = u.uuid)
			else size
		end), 0) + (select coalesce(sum(m.size), 0) from storage.multipart_uploads m))::bigint
		from storage.resumable_uploads u where file_uuid is null`)
	if err != nil {
		return err
	}
	if extra > q.MaxBytes-q.Bytes-pending {
		return overQuota(q.MaxBytes)
	}

	return nil
}

// GetResumable returns a resumable upload to a container of project p. It fails with NotFound if
// the upload does not exist or has expired, or is a part of a file that the previous release would
// concatenate.
func GetResumable(ctx context.Context, p *projectdb.Project, container, id uuid.UUID) (Resumable, error) {
	return pg.One[Resumable](ctx, p.Trusted(), `
		select `+resumableColumns+`, case
			when file_uuid is not null then size
			else (select coalesce(sum(p.size), 0)::bigint from storage.upload_parts p where p.upload_uuid = u.uuid)
		end as offset
		from storage.resumable_uploads u
		where uuid = @id and container_uuid = @container and expires_at > now() and not application
		  and concat <> 'partial'
		  and not exists (select from storage.containers c where c.uuid = u.container_uuid and c.deleting)`,
		pgx.StrictNamedArgs{"id": id, "container": container})
}

// DeleteResumable cancels a resumable upload. It fails with NotFound if it does not exist.
func DeleteResumable(ctx context.Context, p *projectdb.Project, container, id uuid.UUID) error {
	return p.InTx(ctx, func(tx pgx.Tx) error {
		n, err := pg.Exec(ctx, tx,
			`delete from storage.resumable_uploads where uuid = @id and container_uuid = @container`,
			pgx.StrictNamedArgs{"id": id, "container": container})
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.NotFound, "the upload does not exist")
		}

		return nil
	})
}

// Part is a part of a resumable upload.
type Part struct {
	Offset  int64 // must equal the offset of the upload
	Length  int64 // of the whole file; negative if not given
	Content io.Reader
	Sum     *Checksum // may be nil
}

// setLength stores the length of the file if it was deferred.
func (r *Resumable) setLength(ctx context.Context, p *projectdb.Project, length int64) error {
	switch {
	case length < 0 || (!r.Deferred && length == r.Size):
		return nil
	case !r.Deferred || length < r.Offset:
		return fault.OnField(fault.Invalid, "Upload-Length", "mismatch",
			"must equal the length sent before, and be at least the offset")
	case length > r.Size:
		return tooLarge(r.Size)
	}

	err := pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		if err := checkPendingQuota(ctx, tx, length-r.Offset); err != nil {
			return err
		}

		n, err := pg.Exec(ctx, tx, `
			update storage.resumable_uploads set size = @size, deferred = false
			where uuid = @id and deferred and file_uuid is null`,
			pgx.StrictNamedArgs{"id": r.UUID, "size": length})
		if err != nil {
			return err
		}
		if n == 0 {
			return offsetMismatch()
		}

		return nil
	})
	if err != nil {
		return err
	}

	r.Size, r.Deferred = length, false
	return nil
}

// AppendResumable adds a part and creates the file, on behalf of user, after the last one. It fails
// with Conflict if the part does not start at the offset of the upload.
//
// An interrupted part is stored as far as it was received, and the error of its content is
// returned. A part with a checksum is stored completely or not at all, and fails with Mismatch if
// it differs.
func AppendResumable(
	ctx context.Context, p *projectdb.Project, store *blob.Store, user, container, id uuid.UUID, n Part,
) (Resumable, error) {
	r, err := GetResumable(ctx, p, container, id)
	if err != nil {
		return r, err
	}

	return appendPart(ctx, p, store, r, n, func(ctx context.Context, r *Resumable) error {
		return FinishResumable(ctx, p, store, user, r)
	})
}

// appendPart adds a part to an upload. It calls finish after the last one.
func appendPart(
	ctx context.Context, p *projectdb.Project, store *blob.Store, r Resumable, n Part,
	finish func(context.Context, *Resumable) error,
) (Resumable, error) {
	if err := checkDatabase(p); err != nil {
		return r, err
	}
	if r.Offset != n.Offset {
		return r, offsetMismatch()
	}

	if err := r.setLength(ctx, p, n.Length); err != nil {
		return r, err
	}

	ctx = context.WithoutCancel(ctx) // received bytes are stored even if the client disconnected
	part := &truncatingReader{content: n.Content}

	var source io.Reader = part
	if n.Sum != nil {
		source = n.Sum.check(n.Content)
	}

	size, err := r.storePart(ctx, p, store, source)
	if err != nil {
		return r, err
	}

	if r.Offset += size; part.err != nil {
		return r, part.err
	}

	return r, finish(ctx, &r)
}

// storePart stores a part and returns its size in bytes.
func (r *Resumable) storePart(
	ctx context.Context, p *projectdb.Project, store *blob.Store, content io.Reader,
) (int64, error) {
	b, err := uuid.NewRandom()
	if err != nil {
		return 0, err
	}

	if _, err := pg.Exec(ctx, p.Trusted(),
		`insert into storage.uploads (blob_uuid) values (@blob) returning `+asyncCommit,
		pgx.StrictNamedArgs{"blob": b}); err != nil {
		return 0, err
	}

	stored, err := store.Put(ctx, blobKey(p.UUID, b), content, r.Size-r.Offset)
	if fault.Is(err, fault.TooLarge) {
		err = fault.New(fault.TooLarge, "the upload exceeds its announced length").WithCode("too_large").WithCause(err)
	}

	if err == nil && stored.Size > 0 {
		if err = r.recordPart(ctx, p, b, stored.Size); err == nil {
			return stored.Size, nil
		}
	}

	if pg.Violates(err, "upload_parts_first_key") {
		err = offsetMismatch().WithCause(err)
	}

	// Discard the part, unless its commit succeeded and only the reply was lost.
	cleanupCtx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()

	_, discardErr := discard(cleanupCtx, p, store, b)
	return 0, errors.Join(err, discardErr)
}

// recordPart adds a stored part to the upload and extends the expiry of the upload.
func (r *Resumable) recordPart(ctx context.Context, p *projectdb.Project, b uuid.UUID, size int64) error {
	return pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		deleted, err := pg.Exec(ctx, tx, `delete from storage.uploads where blob_uuid = @blob`,
			pgx.StrictNamedArgs{"blob": b})
		if err != nil {
			return err
		}
		if deleted == 0 {
			return fault.New(fault.Conflict, "the part took too long and was discarded; send it again").
				WithCode("expired")
		}

		r.ExpiresAt, err = pg.Value[time.Time](ctx, tx, `
			update storage.resumable_uploads set expires_at = now() + interval '1 day'
			where uuid = @id and file_uuid is null
			returning expires_at`,
			pgx.StrictNamedArgs{"id": r.UUID})
		if fault.Is(err, fault.NotFound) { // the upload is complete, canceled or expired
			return offsetMismatch()
		}
		if err != nil {
			return err
		}

		recorded, err := pg.Exec(ctx, tx, `
			insert into storage.upload_parts (blob_uuid, upload_uuid, first, size)
			select @blob, @id, @first, @size
			where @size >= @small::bigint or @max::bigint > (
				select count(*) from storage.upload_parts where upload_uuid = @id and size < @small)`,
			pgx.StrictNamedArgs{"blob": b, "id": r.UUID, "first": r.Offset, "size": size,
				"small": smallResumablePart, "max": maxSmallResumableParts})
		if err == nil && recorded == 0 {
			return fault.New(fault.Unprocessable, "the upload has %d parts with fewer than %d bytes; send larger ones",
				maxSmallResumableParts, smallResumablePart).WithCode("too_many_parts")
		}
		if err != nil || !r.Deferred {
			return err
		}

		return checkPendingQuota(ctx, tx, 0)
	})
}

// FinishResumable creates the file of a complete upload. It does nothing if the upload is incomplete
// or has its file already.
func FinishResumable(ctx context.Context, p *projectdb.Project, store *blob.Store, user uuid.UUID, r *Resumable) error {
	return finishResumable(ctx, p, store, r, func(content io.Reader) error {
		_, err := CreateFile(ctx, p, store, user, r.ContainerUUID, NewFile{FullFileName: r.FullFileName,
			MimeType: r.MimeType, Content: content, Length: r.Size, Resumed: r.UUID})
		return err
	})
}

// finishResumable calls create with the content of a complete upload without a file.
func finishResumable(
	ctx context.Context, p *projectdb.Project, store *blob.Store, r *Resumable, create func(content io.Reader) error,
) error {
	if !r.Finished() {
		return nil
	}

	parts, err := pg.Values[uuid.UUID](ctx, p.Trusted(),
		`select blob_uuid from storage.upload_parts where upload_uuid = @id order by first`,
		pgx.StrictNamedArgs{"id": r.UUID})
	if err != nil {
		return err
	}

	content := &blobsReader{open: func(b uuid.UUID) (io.ReadCloser, error) {
		content, _, err := store.Open(ctx, blobKey(p.UUID, b))
		return content, err
	}, parts: parts}
	defer content.Close()

	if err = create(content); err == nil {
		return nil
	}

	// A concurrent request may have created the file.
	if done, getErr := pg.Value[bool](ctx, p.Trusted(),
		`select file_uuid is not null from storage.resumable_uploads where uuid = @id`,
		pgx.StrictNamedArgs{"id": r.UUID}); getErr == nil && done {
		return nil
	}

	return err
}

// completeResumable records the file of a resumable upload in the transaction that creates it.
func completeResumable(ctx context.Context, tx pgx.Tx, id, file uuid.UUID) error {
	if id == uuid.Nil {
		return nil
	}

	n, err := pg.Exec(ctx, tx,
		`update storage.resumable_uploads set file_uuid = @file where uuid = @id and file_uuid is null`,
		pgx.StrictNamedArgs{"id": id, "file": file})
	if err != nil {
		return err
	}
	if n == 0 {
		return offsetMismatch()
	}

	_, err = pg.Exec(ctx, tx, `delete from storage.upload_parts where upload_uuid = @id`, pgx.StrictNamedArgs{"id": id})
	return err
}

func offsetMismatch() *fault.Error {
	return fault.OnField(fault.Conflict, "Upload-Offset", "mismatch", "must be the current offset of the upload")
}
