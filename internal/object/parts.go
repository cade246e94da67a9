package object

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tus"
)

type Part struct {
	Offset  int64 // must equal the upload's offset
	Length  int64 // length of the whole file; negative if absent
	Content io.Reader
	Sum     *tus.Checksum // may be nil
}

// setLength stores the file's length if it was deferred.
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

// AppendResumable adds a part and creates the file after the last one. It fails with Conflict if
// the part does not start at the upload's offset. discard reports whether there are bytes that
// [Discard] must remove.
//
// An interrupted part is stored as far as it was received, and the error from its content is
// returned. A part with a checksum is stored completely or not at all, and fails with Mismatch if
// it differs.
func AppendResumable(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, r *Resumable, n Part,
) (discard bool, err error) {
	if err := checkDatabase(p); err != nil {
		return false, err
	}
	if r.Offset != n.Offset {
		return false, offsetMismatch()
	}

	if err := r.setLength(ctx, p, n.Length); err != nil {
		return false, err
	}

	ctx = context.WithoutCancel(ctx) // received bytes are stored even if the client disconnected
	part := &truncatingReader{content: n.Content}

	var source io.Reader = part
	if n.Sum != nil {
		source = n.Sum.Verify(n.Content)
	}

	size, err := r.storePart(ctx, p, store, source)
	if err != nil {
		return false, err
	}

	if r.Offset += size; part.err != nil {
		return false, part.err
	}

	return FinishResumable(ctx, p, store, a, r)
}

// storePart stores a part and returns the size in bytes.
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

	object, err := store.Put(ctx, blobKey(p.UUID, b), content, r.Size-r.Offset)
	if fault.Is(err, fault.TooLarge) {
		err = fault.New(fault.TooLarge, "the upload exceeds its announced length").WithCode("too_large").WithCause(err)
	}

	if err == nil && object.Size > 0 {
		if err = r.recordPart(ctx, p, b, object.Size); err == nil {
			return object.Size, nil
		}
	}

	if pg.Violates(err, "upload_parts_first_key") {
		err = offsetMismatch().WithCause(err)
	}

	// Discard the part, unless the commit succeeded and only the reply was lost.
	cleanupCtx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()

	_, discardErr := discardBlob(cleanupCtx, p, store, b)
	return 0, errors.Join(err, discardErr)
}

// recordPart adds a stored part to the upload and extends the upload's expiry.
func (r *Resumable) recordPart(ctx context.Context, p *projectdb.Project, b uuid.UUID, size int64) error {
	return pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		rows, err := pg.Exec(ctx, tx, `delete from storage.uploads where blob_uuid = @blob`,
			pgx.StrictNamedArgs{"blob": b})
		if err != nil {
			return err
		}
		if rows == 0 {
			return partExpired()
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

		inserts, err := pg.Exec(ctx, tx, `
			insert into storage.upload_parts (blob_uuid, upload_uuid, first, size)
			select @blob, @id, @first, @size
			where @size >= @small::bigint or @max::bigint > (
				select count(*) from storage.upload_parts where upload_uuid = @id and size < @small)`,
			pgx.StrictNamedArgs{"blob": b, "id": r.UUID, "first": r.Offset, "size": size,
				"small": smallResumablePart, "max": maxSmallResumableParts})
		if err == nil && inserts == 0 {
			return fault.New(fault.Unprocessable, "the upload has %d parts with fewer than %d bytes; send larger ones",
				maxSmallResumableParts, smallResumablePart).WithCode("too_many_parts")
		}
		if err != nil || !r.Deferred {
			return err
		}

		return checkPendingQuota(ctx, tx, 0)
	})
}

// FinishResumable creates the file for a complete upload. It does nothing if the upload is
// incomplete or the file exists already. discard reports whether there are bytes that [Discard]
// must remove.
func FinishResumable(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, r *Resumable,
) (discard bool, err error) {
	if !r.isFinished() {
		return false, nil
	}

	parts, err := pg.Values[uuid.UUID](ctx, p.Trusted(),
		`select blob_uuid from storage.upload_parts where upload_uuid = @id order by first`,
		pgx.StrictNamedArgs{"id": r.UUID})
	if err != nil {
		return false, err
	}

	content := openBlobs(ctx, p, store, parts)
	defer content.Close()

	n := r.file()
	n.Content = content
	_, replaces, err := createFile(ctx, p, store, a, r.ref(), n, resumableUpload(r.UUID))
	if err == nil {
		return replaces || len(parts) > 0, nil
	}

	// A concurrent request may have created the file.
	if hasFile, getErr := pg.Value[bool](ctx, p.Trusted(),
		`select file_uuid is not null from storage.resumable_uploads where uuid = @id`,
		pgx.StrictNamedArgs{"id": r.UUID}); getErr == nil && hasFile {
		return false, nil
	}

	return false, err
}

func offsetMismatch() *fault.Error {
	return fault.OnField(fault.Conflict, "Upload-Offset", "mismatch", "must be the current offset of the upload")
}
