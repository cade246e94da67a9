package object

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// completion is the ticket, resumable upload or multipart upload that becomes a file.
type completion interface {
	// complete ends it in the transaction that creates the file, before it inserts the file's row:
	// parts lock their upload before the usage row, too. It fails if it has ended.
	complete(ctx context.Context, tx pgx.Tx, file uuid.UUID) error
}

// ticket permits a signed upload, see [SignUpload].
type ticket uuid.UUID

// complete implements completion. Concurrent uses of the ticket wait for the row lock and fail
// after the commit.
func (t ticket) complete(ctx context.Context, tx pgx.Tx, _ uuid.UUID) error {
	n, err := pg.Exec(ctx, tx, `delete from storage.signed_uploads where uuid = @id`,
		pgx.StrictNamedArgs{"id": uuid.UUID(t)})
	return endedIf(n == 0, err, ticketUsed())
}

// resumableUpload is the UUID of a [Resumable].
type resumableUpload uuid.UUID

// complete implements completion.
func (r resumableUpload) complete(ctx context.Context, tx pgx.Tx, file uuid.UUID) error {
	n, err := pg.Exec(ctx, tx,
		`update storage.resumable_uploads set file_uuid = @file where uuid = @id and file_uuid is null`,
		pgx.StrictNamedArgs{"id": uuid.UUID(r), "file": file})
	if err := endedIf(n == 0, err, offsetMismatch()); err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `delete from storage.upload_parts where upload_uuid = @id`,
		pgx.StrictNamedArgs{"id": uuid.UUID(r)})
	return err
}

// multipartUpload is the UUID of a [Multipart].
type multipartUpload uuid.UUID

// complete implements completion.
func (m multipartUpload) complete(ctx context.Context, tx pgx.Tx, file uuid.UUID) error {
	n, err := pg.Exec(ctx, tx,
		`update storage.multipart_uploads set file_uuid = @file, size = 0 where uuid = @id and file_uuid is null`,
		pgx.StrictNamedArgs{"id": uuid.UUID(m), "file": file})
	if err := endedIf(n == 0, err, errNoMultipart); err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `delete from storage.multipart_parts where upload_uuid = @id`,
		pgx.StrictNamedArgs{"id": uuid.UUID(m)})
	return err
}

// endedIf returns err, or failure if the upload has ended.
func endedIf(isEnded bool, err error, failure *fault.Error) error {
	if err == nil && isEnded {
		return failure
	}
	return err
}
