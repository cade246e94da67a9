package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// MarkOutbox records that the SQL of a project leaves work for the server.
func (s *Store) MarkOutbox(ctx context.Context, project uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `
		insert into platform.outbox_projects (project_uuid, found_at)
		select uuid, now() from platform.projects where uuid = $1
		on conflict (project_uuid) do update set found_at = excluded.found_at`, project)
	return err
}

// OutboxProjects returns the active projects marked by [Store.MarkOutbox] within a time.
func (s *Store) OutboxProjects(ctx context.Context, age time.Duration) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `
		select o.project_uuid from platform.outbox_projects o
		join platform.projects p on p.uuid = o.project_uuid
		where p.status = 'active' and o.found_at > now() - make_interval(secs => @seconds::float8)
		order by o.project_uuid`, pgx.StrictNamedArgs{"seconds": age.Seconds()})
}
