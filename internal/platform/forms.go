package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// IndexForm notes in which project a form lives. It comes before the form itself: an entry whose form was
// never made leads nowhere, while a form without an entry could not be reached.
func (s *Store) IndexForm(ctx context.Context, form, project uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `insert into platform.forms (uuid, project_uuid) values (@form, @project)`,
		pgx.StrictNamedArgs{"form": form, "project": project})
	return err
}
