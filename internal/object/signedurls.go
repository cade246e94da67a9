package object

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// SignDownload records in the audit log that a download URL is signed for a file, and returns the
// file. It fails with NotFound if the file does not exist, else with check's error.
func SignDownload(
	ctx context.Context, p *projectdb.Project, container, file uuid.UUID, check func() error,
) (File, error) {
	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (File, error) {
		f, err := pg.One[File](ctx, tx, `
			select `+fileColumns+` from storage.files f
			where uuid = @file and container_uuid = @container
			  and not exists (select from storage.containers c where c.uuid = f.container_uuid and c.deleting)`,
			pgx.StrictNamedArgs{"file": file, "container": container})
		if err != nil {
			return f, err
		}

		return f, check()
	})
}

// SignUpload creates a ticket for one upload to a container, valid until a time. It fails with
// NotFound if the container does not exist, and with Unprocessable on full_file_name if the name is
// invalid.
func SignUpload(
	ctx context.Context, p *projectdb.Project, container uuid.UUID, fullFileName string, until time.Time,
) (uuid.UUID, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return id, err
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (uuid.UUID, error) {
		ticketUUID, err := pg.Value[uuid.UUID](ctx, tx, `
			insert into storage.signed_uploads (uuid, container_uuid, expires_at)
			select @id::uuid, c.uuid, @until from storage.containers c where c.uuid = @container and not c.deleting
			for key share
			returning uuid`, pgx.StrictNamedArgs{"id": id, "container": container, "until": until})
		if err == nil {
			err = checkFileName(fullFileName)
		}

		audit.CreatedUUID(ctx, id)
		return ticketUUID, err
	})
}

// CheckTicket checks a ticket. It fails with NotFound if the container does not exist, and with
// Unauthenticated if the ticket was used or never existed.
func CheckTicket(ctx context.Context, p *projectdb.Project, container, ticket uuid.UUID) error {
	exists, err := pg.Value[bool](ctx, p.Trusted(), `
		select exists (select from storage.signed_uploads where uuid = @ticket)
		from storage.containers where uuid = @container and not deleting`,
		pgx.StrictNamedArgs{"container": container, "ticket": ticket})
	if err != nil {
		return err
	}
	if !exists {
		return ticketUsed()
	}

	return nil
}

func ticketUsed() *fault.Error {
	return fault.New(fault.Unauthenticated, "the signed URL has already been used").WithCode("signature_used")
}
