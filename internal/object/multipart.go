package object

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Multipart upload limits.
const (
	MaxMultipartUploads = 1000    // uploads in progress per project
	MaxParts            = 10_000  // parts per upload
	minPartSize         = 5 << 20 // bytes in every part but the last
	maxSmallParts       = 100     // smaller parts per upload: the quota bounds the others
	multipartTTL        = 7 * 24 * time.Hour
)

// Multipart is a multipart upload. Each part is a separate blob, recorded before the first byte.
// [CompleteMultipart] creates the object. An upload expires a week after the last part; [Sweep]
// deletes it. The parts count toward the quota.
type Multipart struct {
	UUID         uuid.UUID
	FullFileName string
	MimeType     string // as claimed by the client
	CacheControl string
	Metadata     []byte // the application's JSON object; nil means none
	Headers      Headers
	FileUUID     uuid.NullUUID
	CreatedAt    time.Time
}

type MultipartPart struct {
	Number    int
	Size      int64
	SHA256    []byte `db:"sha256"`
	CreatedAt time.Time
	BlobUUID  uuid.UUID
}

const multipartColumns = `
	uuid, full_file_name, mime_type, coalesce(cache_control, '') as cache_control, user_metadata as metadata, headers,
	file_uuid, created_at`

// errNoMultipart is the failure when an upload does not exist.
var errNoMultipart = fault.New(fault.NotFound, "The upload does not exist, or was completed or aborted").
	WithCode("NoSuchUpload")

// CreateMultipart starts a multipart upload to a container. It fails as [CreateFile] does, as far
// as the announced values allow, and with TooMany beyond [MaxMultipartUploads].
func CreateMultipart(ctx context.Context, p *projectdb.Project, container uuid.UUID, n NewFile) (Multipart, error) {
	if err := checkFileName(n.FullFileName); err != nil {
		return Multipart{}, err
	}
	if err := checkDatabase(p); err != nil {
		return Multipart{}, err
	}

	id, err := uuid.NewRandom()
	if err != nil {
		return Multipart{}, err
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Multipart, error) {
		mimeType := claimedType(n.MimeType)
		limits, err := lockLimits(ctx, tx, container)
		if err == nil {
			err = limits.checkClaimed(mimeType)
		}
		if err != nil {
			return Multipart{}, err
		}

		// The lock makes the count exact.
		if _, err := pg.Value[int64](ctx, tx, `select bytes from storage.usage for update`,
			pgx.StrictNamedArgs{}); err != nil {
			return Multipart{}, err
		}

		u, err := pg.One[Multipart](ctx, tx, `
			insert into storage.multipart_uploads
				(uuid, container_uuid, full_file_name, mime_type, cache_control, user_metadata, headers, expires_at)
			select @id, @container, @name, @type, @cache, @metadata, @headers, now() + @ttl::interval
			where (select count(*) from storage.multipart_uploads where file_uuid is null) < @max::bigint
			returning `+multipartColumns,
			pgx.StrictNamedArgs{"id": id, "container": container, "name": n.FullFileName, "type": mimeType,
				"cache": optional(n.CacheControl), "metadata": optional(string(n.Metadata)), "headers": n.Headers,
				"ttl": multipartTTL, "max": MaxMultipartUploads})
		if fault.Is(err, fault.NotFound) {
			return u, fault.New(fault.TooMany, "The project has %d multipart uploads in progress", MaxMultipartUploads)
		}

		return u, err
	})
}

// GetMultipart returns a file's multipart upload. It fails with NotFound if it does not exist or
// has expired.
func GetMultipart(
	ctx context.Context, p *projectdb.Project, container uuid.UUID, name string, id uuid.UUID,
) (Multipart, error) {
	u, err := pg.One[Multipart](ctx, p.Trusted(), `
		select `+multipartColumns+` from storage.multipart_uploads
		where uuid = @id and container_uuid = @container and full_file_name = @name and expires_at > now()`,
		pgx.StrictNamedArgs{"id": id, "container": container, "name": name})
	if fault.Is(err, fault.NotFound) {
		return u, errNoMultipart
	}

	return u, err
}

// ListMultiparts returns a container's multipart uploads in progress whose file names have a
// prefix, by name and start time.
func ListMultiparts(
	ctx context.Context, p *projectdb.Project, container uuid.UUID, prefix string,
) ([]Multipart, error) {
	return pg.All[Multipart](ctx, p.Trusted(), `
		select `+multipartColumns+` from storage.multipart_uploads
		where container_uuid = @container and file_uuid is null and expires_at > now()
		  and starts_with(full_file_name, @prefix)
		order by full_file_name, created_at, uuid limit @max`,
		pgx.StrictNamedArgs{"container": container, "prefix": prefix, "max": MaxMultipartUploads})
}

// ListParts returns up to limit parts with numbers above after, in order.
func ListParts(
	ctx context.Context, p *projectdb.Project, id uuid.UUID, after, limit int,
) ([]MultipartPart, error) {
	return pg.All[MultipartPart](ctx, p.Trusted(), `
		select number, size, sha256, created_at, blob_uuid from storage.multipart_parts
		where upload_uuid = @id and number > @after order by number limit @limit`,
		pgx.StrictNamedArgs{"id": id, "after": after, "limit": limit})
}

// PutPart stores a part, completely or not at all. It replaces an earlier part with the same
// number. length is the length that the client announced, 0 if unknown.
func PutPart(
	ctx context.Context, p *projectdb.Project, store *blob.Store, container uuid.UUID, u Multipart, number int,
	content io.Reader, length int64,
) (MultipartPart, error) {
	if u.FileUUID.Valid {
		return MultipartPart{}, errNoMultipart
	}
	if err := checkDatabase(p); err != nil {
		return MultipartPart{}, err
	}

	part := MultipartPart{Number: number}
	var err error
	if part.BlobUUID, err = uuid.NewRandom(); err != nil {
		return part, err
	}

	row, err := pg.One[struct {
		MaxFileSize, QuotaBytes, Room int64
	}](ctx, p.Trusted(), `
		with noted as (
			insert into storage.uploads (blob_uuid) values (@blob) returning `+asyncCommit+`
		)
		select c.max_file_size, coalesce(u.max_bytes, @bytes) as quota_bytes,
		       greatest(coalesce(u.max_bytes, @bytes) - u.bytes, 0) as room
		from storage.containers c, storage.usage u where c.uuid = @container and not c.deleting`,
		pgx.StrictNamedArgs{"blob": part.BlobUUID, "container": container, "bytes": DefaultQuotaBytes})
	if err != nil {
		return part, err
	}

	limits := uploadLimits{MaxFileSize: row.MaxFileSize, MaxBytes: row.QuotaBytes, FreeBytes: row.Room}
	var object blob.Object
	if err = limits.checkLength(length); err == nil {
		object, err = limits.put(ctx, store, blobKey(p.UUID, part.BlobUUID), content)
	}

	if err == nil {
		part.Size, part.SHA256 = object.Size, object.SHA256
		if part.CreatedAt, err = recordMultipart(ctx, p, u.UUID, part); err == nil {
			return part, nil
		}
	}

	// Discard the part, unless the commit succeeded and only the reply was lost.
	cleanupCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()

	_, discardErr := discardBlob(cleanupCtx, p, store, part.BlobUUID)
	return part, errors.Join(err, discardErr)
}

// recordMultipart adds a stored part to an upload and extends the upload's expiry.
func recordMultipart(
	ctx context.Context, p *projectdb.Project, id uuid.UUID, part MultipartPart,
) (at time.Time, err error) {
	err = pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		rows, err := pg.Exec(ctx, tx, `delete from storage.uploads where blob_uuid = @blob`,
			pgx.StrictNamedArgs{"blob": part.BlobUUID})
		if err != nil {
			return err
		}
		if rows == 0 {
			return partExpired()
		}

		args := pgx.StrictNamedArgs{"id": id, "number": part.Number}
		if _, err = pg.Value[uuid.UUID](ctx, tx, `
			select uuid from storage.multipart_uploads
			where uuid = @id and file_uuid is null and expires_at > now() for update`,
			pgx.StrictNamedArgs{"id": id}); fault.Is(err, fault.NotFound) {
			return errNoMultipart
		} else if err != nil {
			return err
		}

		oldSize, err := pg.Value[int64](ctx, tx, `
			with gone as (
				delete from storage.multipart_parts where upload_uuid = @id and number = @number returning size
			)
			select coalesce(sum(size), 0)::bigint from gone`, args)
		if err != nil {
			return err
		}

		args["blob"], args["size"], args["sha256"] = part.BlobUUID, part.Size, part.SHA256
		args["min"], args["max"] = minPartSize, maxSmallParts
		at, err = pg.Value[time.Time](ctx, tx, `
			insert into storage.multipart_parts (blob_uuid, upload_uuid, number, size, sha256)
			select @blob, @id, @number, @size, @sha256
			where @size >= @min::bigint or @max::bigint > (
				select count(*) from storage.multipart_parts where upload_uuid = @id and size < @min)
			returning created_at`, args)
		if fault.Is(err, fault.NotFound) {
			return fault.New(fault.Invalid, "The upload has %d parts with fewer than %d bytes", maxSmallParts, minPartSize).
				WithCode("EntityTooSmall")
		}
		if err != nil {
			return err
		}

		if _, err := pg.Exec(ctx, tx, `
			update storage.multipart_uploads set size = size + @more, expires_at = now() + @ttl::interval
			where uuid = @id`,
			pgx.StrictNamedArgs{"id": id, "more": part.Size - oldSize, "ttl": multipartTTL}); err != nil {
			return err
		}

		return checkPendingQuota(ctx, tx, 0)
	})

	return at, err
}

// CompletedPart names a part for [CompleteMultipart].
type CompletedPart struct {
	Number int
	Tag    string // [MultipartPart.Tag]
}

// Tag identifies the part's bytes.
func (m MultipartPart) Tag() string { return hex.EncodeToString(m.SHA256[:16]) }

// Completion holds the input for [CompleteMultipart].
type Completion struct {
	Parts  []CompletedPart
	Size   int64                     // announced size in bytes, -1 if unknown
	Verify func(io.Reader) io.Reader // makes a wrong checksum fail the last Read; nil: no check
	Upsert bool                      // replace an existing object
}

func (c Completion) checkSize(size int64) error {
	if c.Size >= 0 && c.Size != size {
		return fault.New(fault.Invalid, "The object has %d bytes, not %d", size, c.Size).WithCode("InvalidRequest")
	}
	return nil
}

// CompleteMultipart creates the file from the parts, in order, or replaces the present one, and
// discards all parts. It fails with Invalid if the size differs from the announced one. If the
// upload is already complete, it returns the same result again. discard reports whether there are
// bytes that [Discard] must remove.
func CompleteMultipart(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, to ContainerRef, u Multipart,
	in Completion,
) (f File, discard bool, err error) {
	if u.FileUUID.Valid {
		f, err = fileAt(ctx, p, u.FileUUID.UUID)
		if err == nil {
			err = in.checkSize(f.Size)
		}
		return f, false, err
	}

	present, err := ListParts(ctx, p, u.UUID, 0, MaxParts)
	if err != nil {
		return f, false, err
	}

	blobs, size, err := selectParts(present, in.Parts)
	if err != nil {
		return f, false, err
	}
	if err := in.checkSize(size); err != nil {
		return f, false, err
	}

	bytes := openBlobs(ctx, p, store, blobs)
	defer bytes.Close()

	content := io.Reader(bytes)
	if in.Verify != nil {
		content = in.Verify(content)
	}

	f, _, err = createFile(ctx, p, store, a, to, NewFile{FullFileName: u.FullFileName, MimeType: u.MimeType,
		Content: content, Length: size, Upsert: in.Upsert, CacheControl: u.CacheControl, Metadata: u.Metadata,
		Headers: u.Headers}, multipartUpload(u.UUID))
	if err == nil {
		return f, true, nil
	}

	// A concurrent request may have created the object.
	now, getErr := GetMultipart(ctx, p, to.UUID, u.FullFileName, u.UUID)
	if getErr == nil && now.FileUUID.Valid {
		f, err = fileAt(ctx, p, now.FileUUID.UUID)
	}

	return f, true, err
}

// fileAt returns a file by UUID, or NotFound.
func fileAt(ctx context.Context, p *projectdb.Project, file uuid.UUID) (File, error) {
	return pg.One[File](ctx, p.Trusted(), `select `+fileColumns+` from storage.files where uuid = @file`,
		pgx.StrictNamedArgs{"file": file})
}

// selectParts returns the listed parts' blobs and their total size.
func selectParts(present []MultipartPart, list []CompletedPart) (blobs []uuid.UUID, size int64, err error) {
	for i, n := range list {
		if i > 0 && n.Number <= list[i-1].Number {
			return nil, 0, fault.New(fault.Invalid, "The parts are not in ascending order").WithCode("InvalidPartOrder")
		}

		at, ok := slices.BinarySearchFunc(present, n.Number, func(p MultipartPart, n int) int { return p.Number - n })
		if !ok || present[at].Tag() != n.Tag {
			return nil, 0, fault.New(fault.Invalid, "Part %d does not exist, or has another tag", n.Number).
				WithCode("InvalidPart")
		}
		if i < len(list)-1 && present[at].Size < minPartSize {
			return nil, 0, fault.New(fault.Invalid, "Part %d has fewer than %d bytes", n.Number, minPartSize).
				WithCode("EntityTooSmall")
		}

		blobs, size = append(blobs, present[at].BlobUUID), size+present[at].Size
	}

	if len(list) == 0 {
		return nil, 0, fault.New(fault.Invalid, "The list of parts is empty").WithCode("MalformedXML")
	}

	return blobs, size, nil
}

// AbortMultipart deletes an upload in progress. [Discard] removes the bytes.
func AbortMultipart(ctx context.Context, p *projectdb.Project, u Multipart) error {
	return p.InTx(ctx, func(tx pgx.Tx) error {
		n, err := pg.Exec(ctx, tx, `delete from storage.multipart_uploads where uuid = @id and file_uuid is null`,
			pgx.StrictNamedArgs{"id": u.UUID})
		if err == nil && n == 0 {
			err = errNoMultipart
		}

		return err
	})
}
