package object

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/tenant"
)

// FileUpdate holds the values to change; nil leaves a value unchanged.
type FileUpdate struct {
	FullFileName *string
	Container    *uuid.UUID // the destination
}

// UpdateFile renames a file of a container of project p, or moves it to another container, on
// behalf of user. It copies no bytes. It fails with NotFound if the file does not exist, with
// Unprocessable on every invalid field, including the limits of the destination, and with Conflict
// on full_file_name if the name is taken there.
func UpdateFile(ctx context.Context, p *tenant.Project, user, container, file uuid.UUID, u FileUpdate) (File, error) {
	updated, err := tenant.Change(ctx, p, func(tx pgx.Tx) (File, error) {
		f, err := pg.One[File](ctx, tx, `
			select `+fileColumns+
			` from storage.files where uuid = @file and container_uuid = @container for no key update`,
			pgx.StrictNamedArgs{"file": file, "container": container})
		if err != nil {
			return f, err
		}

		if err := u.check(ctx, tx, f); err != nil {
			return f, err
		}

		return pg.One[File](ctx, tx, `
			update storage.files
			set full_file_name = coalesce(@name, full_file_name), container_uuid = coalesce(@to, container_uuid),
			    updated_by = @user, updated_at = now()
			where uuid = @file
			returning `+fileColumns,
			pgx.StrictNamedArgs{"file": file, "name": u.FullFileName, "to": u.Container, "user": user})
	})
	if pg.Violates(err, "files_full_file_name_key") {
		return updated, nameTaken().Because(err)
	}

	return updated, err
}

func (u FileUpdate) check(ctx context.Context, tx pgx.Tx, f File) error {
	if u == (FileUpdate{}) {
		return fault.New(fault.Unprocessable, "nothing is named that could change").WithCode("required")
	}

	if u.FullFileName != nil {
		if err := checkFileName(*u.FullFileName); err != nil {
			return err
		}
	}

	if u.Container == nil || *u.Container == f.ContainerUUID {
		return nil
	}

	to, err := pg.One[intake](ctx, tx, `
		select max_file_size, allowed_mime_types from storage.containers where uuid = @to and not deleting for key share`,
		pgx.StrictNamedArgs{"to": *u.Container})
	switch {
	case fault.Is(err, fault.NotFound):
		return fault.OnField(fault.Unprocessable, "container_uuid", "not_found", "names no container of the project")
	case err != nil:
		return err
	case f.Size > to.MaxFileSize:
		return fault.OnField(fault.Unprocessable, "container_uuid", "too_large",
			"names a container that takes at most %d bytes", to.MaxFileSize)
	}

	return to.takes(f.MimeType, "container_uuid")
}

// GetFile returns a file of a container of project p. It fails with NotFound if it does not exist.
func GetFile(ctx context.Context, p *tenant.Project, container, file uuid.UUID) (File, error) {
	return pg.One[File](ctx, p.Trusted(), `
		select `+fileColumns+` from storage.files f
		where uuid = @file and container_uuid = @container
		  and not exists (select from storage.containers c where c.uuid = f.container_uuid and c.deleting)`,
		pgx.StrictNamedArgs{"file": file, "container": container})
}
