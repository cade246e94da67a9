package tenant

import (
	"context"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/pg"
)

// Maintain calls f with a project that is paused or deleted. Only the platform's own login connects
// to its database, and the project's state does not change.
//
// It fails with Conflict if migrations are pending; they are applied when the project is resumed.
func (r *Registry) Maintain(ctx context.Context, id uuid.UUID, f func(p *Project) error) error {
	p := &Project{UUID: id, registry: r, closed: true}
	defer p.close(time.Now().Add(time.Hour))

	version, err := pg.Value[int64](ctx, p.Trusted(), `select max(version_id) from socle.migrations where is_applied`)
	if err != nil {
		return err
	}

	if version < Version() {
		return fault.New(fault.Conflict, "its database is of an older release until it is resumed").WithCode("outdated")
	}

	return f(p)
}
