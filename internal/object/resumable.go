package object

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tus"
)

// Resumable upload limits. Byte limits bound everything else.
const (
	maxResumableUploads    = 10_000   // uploads in progress per project
	smallResumablePart     = 64 << 10 // bytes
	maxSmallResumableParts = 1000     // smaller parts per upload
)

// Resumable is a resumable upload. Each part is a separate blob. The last part makes
// [FinishResumable] copy them into one blob and create the file. An upload expires one day after
// the last part; [Sweep] deletes it.
type Resumable struct {
	UUID          uuid.UUID
	ContainerUUID uuid.UUID
	BucketID      string // container ID
	FullFileName  string
	MimeType      string // as claimed by the client
	Size          int64  // whole file in bytes; the upper limit while Deferred
	Deferred      bool   // the client sends the length later
	Offset        int64  // bytes received
	FileUUID      uuid.NullUUID
	ExpiresAt     time.Time

	Application  bool   // started by an application, not by a member
	Owner        string // the actor's Subject; "" for a member or a key
	Upsert       bool
	CacheControl string
	Metadata     []byte // the application's JSON object; nil means none

	MetadataHeader string // Upload-Metadata from the request that created it
}

const resumableColumns = `
	u.uuid, u.container_uuid, c.id as bucket_id, u.full_file_name, u.mime_type, u.size, u.deferred, u.file_uuid,
	u.expires_at, u.application, coalesce(u.owner_id, '') as owner, u.upsert,
	coalesce(u.cache_control, '') as cache_control, u.user_metadata as metadata, u.metadata_header`

// isFinished reports whether all bytes have arrived and the file does not exist yet.
func (r Resumable) isFinished() bool { return r.Offset == r.Size && !r.Deferred && !r.FileUUID.Valid }

// State returns the upload's state for responses.
func (r Resumable) State() tus.Upload {
	return tus.Upload{Offset: r.Offset, Length: r.Size, Deferred: r.Deferred, Metadata: r.MetadataHeader,
		Expires: r.ExpiresAt}
}

func (r Resumable) ref() ContainerRef { return ContainerRef{r.ContainerUUID, r.BucketID} }

// file returns the file to create, without content.
func (r Resumable) file() NewFile {
	return NewFile{FullFileName: r.FullFileName, MimeType: r.MimeType, Length: r.Size, Upsert: r.Upsert,
		CacheControl: r.CacheControl, Metadata: r.Metadata}
}

// CreateResumable starts a resumable upload to a container, n.Length bytes long. It fails as
// [CreateFile] does, as far as the announced values allow.
//
// Announced bytes count toward the quota. If n.Length is negative, the length is deferred and the
// received bytes count.
func CreateResumable(
	ctx context.Context, p *projectdb.Project, a actor.Actor, to ContainerRef, n NewFile,
) (Resumable, error) {
	question, err := newUpload(p, nil, a, to, n, nil)
	if err != nil {
		return Resumable{}, err
	}
	if !a.Member {
		if err := question.checkRights(ctx); err != nil {
			return Resumable{}, err
		}
	}

	id, err := uuid.NewRandom()
	if err != nil {
		return Resumable{}, err
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Resumable, error) {
		audit.CreatedUUID(ctx, id)
		return insertResumable(ctx, tx, a, id, to, n)
	})
}

// insertResumable records an upload if the container accepts it.
func insertResumable(
	ctx context.Context, tx pgx.Tx, a actor.Actor, id uuid.UUID, to ContainerRef, n NewFile,
) (Resumable, error) {
	limits, err := pg.One[struct {
		uploadLimits
		Taken bool
	}](ctx, tx, `
		select max_file_size, allowed_mime_types, `+nameExists+` as taken
		from storage.containers c where uuid = @container and not deleting for key share`,
		pgx.StrictNamedArgs{"container": to.UUID, "name": n.FullFileName})
	if err != nil {
		return Resumable{}, err
	}

	if n.Most > 0 {
		limits.MaxFileSize = min(limits.MaxFileSize, n.Most)
	}

	size, isDeferred := n.Length, n.Length < 0
	if isDeferred {
		n.Length, size = 0, limits.MaxFileSize
	}

	mimeType := claimedType(n.MimeType)
	invalid := checkFileName(n.FullFileName)
	switch {
	case invalid != nil:
	case n.Length > limits.MaxFileSize:
		invalid = tooLarge(limits.MaxFileSize)
	case limits.Taken && !n.Upsert:
		invalid = nameTaken()
	default:
		invalid = limits.checkClaimed(mimeType)
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
		with u as (
			insert into storage.resumable_uploads
				(uuid, container_uuid, full_file_name, mime_type, size, deferred, application, upsert, owner_id,
				 cache_control, user_metadata, metadata_header)
			values (@id, @container, @name, @type, @size, @deferred, @application, @upsert, @owner_id,
				@cache_control, @metadata, @metadata_header)
			returning *
		)
		select `+resumableColumns+`, 0::bigint as offset from u join storage.containers c on c.uuid = u.container_uuid`,
		pgx.StrictNamedArgs{
			"id": id, "container": to.UUID, "name": n.FullFileName, "type": mimeType, "size": size,
			"deferred": isDeferred, "application": !a.Member, "upsert": n.Upsert, "owner_id": optional(ownerID(a)),
			"cache_control": optional(n.CacheControl), "metadata": optional(string(n.Metadata)),
			"metadata_header": n.MetadataHeader,
		})
}

// GetResumable returns a resumable upload. It fails with NotFound if the upload does not exist or
// has expired, or is part of a file that the previous release would concatenate. The caller checks
// [Resumable.Access].
func GetResumable(ctx context.Context, p *projectdb.Project, id uuid.UUID) (Resumable, error) {
	return pg.One[Resumable](ctx, p.Trusted(), `
		select `+resumableColumns+`, case
			when u.file_uuid is not null then u.size
			else (select coalesce(sum(p.size), 0)::bigint from storage.upload_parts p where p.upload_uuid = u.uuid)
		end as offset
		from storage.resumable_uploads u join storage.containers c on c.uuid = u.container_uuid
		where u.uuid = @id and u.expires_at > now() and u.concat <> 'partial' and not c.deleting`,
		pgx.StrictNamedArgs{"id": id})
}

// Access fails with NotFound for another user's upload: members share theirs, and each end user has
// separate ones. An upload by a key belongs to every application with the right to insert its file:
// Access fails with Forbidden for others.
func (r Resumable) Access(ctx context.Context, p *projectdb.Project, a actor.Actor) error {
	switch {
	case r.Application == a.Member || r.Owner != ownerID(a):
		return fault.New(fault.NotFound, "the upload is of another user")
	case a.Member || r.Owner != "":
		return nil
	}

	question, err := newUpload(p, nil, a, r.ref(), r.file(), nil)
	if err != nil {
		return err
	}

	return question.ask(ctx)
}

// DeleteResumable cancels a resumable upload. [Discard] removes the bytes. It fails with NotFound
// if it does not exist.
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
