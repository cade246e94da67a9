package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// IndexForm records a form's project. Call it before the form is created: an entry without a form
// is harmless, a form without an entry is unreachable.
func (s *Store) IndexForm(ctx context.Context, form, project uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `insert into platform.forms (uuid, project_uuid) values (@form, @project)`,
		pgx.StrictNamedArgs{"form": form, "project": project})
	return err
}

// UnindexForm deletes a deleted form's entry.
func (s *Store) UnindexForm(ctx context.Context, form uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.forms where uuid = @form`, pgx.StrictNamedArgs{"form": form})
	return err
}

// FormProject returns a form's project. It fails with NotFound if the form is unknown or the
// project not active.
func (s *Store) FormProject(ctx context.Context, form uuid.UUID) (uuid.UUID, error) {
	return pg.Value[uuid.UUID](ctx, s.q, `
		select p.uuid from platform.forms f join platform.projects p on p.uuid = f.project_uuid
		where f.uuid = @form and p.status = 'active'`, pgx.StrictNamedArgs{"form": form})
}

// ForeignForms returns the forms that belong to another project.
func (s *Store) ForeignForms(ctx context.Context, project uuid.UUID, forms []uuid.UUID) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q,
		`select uuid from platform.forms where uuid = any(@forms::uuid[]) and project_uuid <> @project`,
		pgx.StrictNamedArgs{"forms": forms, "project": project})
}
