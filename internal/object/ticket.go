package object

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/tenant"
)

// SignDownload notes that somebody signs a URL for reading a file of a container of project p, and returns the file. It fails with
// NotFound if there is none, and then with what check fails with.
func SignDownload(ctx context.Context, p *tenant.Project, container, file uuid.UUID, check func() error) (File, error) {
	return tenant.Change(ctx, p, func(tx pgx.Tx) (File, error) {
		f, err := pg.One[File](ctx, tx, `
			select `+fileColumns+` from storage.files f
			where uuid = @file and container_uuid = @container
			  and not exists (select from storage.containers c where c.uuid = f.container_uuid and c.deleting)`,
			pgx.StrictNamedArgs{"file": file, "container": container})
		if err == nil {
			err = check()
		}

		return f, err
	})
}

// SignUpload makes a ticket for one upload to a container of project p, good until a time. It fails with NotFound if there is no such
// container, and with Unprocessable on full_file_name if the name breaks a rule.
func SignUpload(
	ctx context.Context, p *tenant.Project, container uuid.UUID, fullFileName string, until time.Time,
) (uuid.UUID, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return id, err
	}

	return tenant.Change(ctx, p, func(tx pgx.Tx) (uuid.UUID, error) {
		made, err := pg.Value[uuid.UUID](ctx, tx, `
			insert into storage.signed_uploads (uuid, container_uuid, expires_at)
			select @id::uuid, c.uuid, @until from storage.containers c where c.uuid = @container and not c.deleting
			for key share
			returning uuid`, pgx.StrictNamedArgs{"id": id, "container": container, "until": until})
		if err == nil {
			err = checkFileName(fullFileName)
		}

		audit.CreatedUUID(ctx, id)
		return made, err
	})
}

// CheckTicket fails with NotFound if the container of a ticket of project p is gone, and with Unauthenticated if the ticket is used, or was never made.
func CheckTicket(ctx context.Context, p *tenant.Project, container, ticket uuid.UUID) error {
	left, err := pg.Value[bool](ctx, p.Trusted(), `
		select exists (select from storage.signed_uploads where uuid = @ticket)
		from storage.containers where uuid = @container and not deleting`,
		pgx.StrictNamedArgs{"container": container, "ticket": ticket})
	if err == nil && !left {
		return ticketUsed()
	}

	return err
}

// useTicket strikes a ticket off in the transaction that makes its file. Of several who use it at once the others wait, and fail
// once the file is made.
func useTicket(ctx context.Context, tx pgx.Tx, ticket uuid.UUID) error {
	if ticket == uuid.Nil {
		return nil
	}

	n, err := pg.Exec(ctx, tx, `delete from storage.signed_uploads where uuid = @id`, pgx.StrictNamedArgs{"id": ticket})
	if err == nil && n == 0 {
		return ticketUsed()
	}

	return err
}

func ticketUsed() *fault.Error {
	return fault.New(fault.Unauthenticated, "the signed URL was used already").WithCode("signature_used")
}
