package tenant

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// Probe opens and closes a connection within the budget. It fails if a request to a project without
// open connections could not connect.
func (r *Registry) Probe(ctx context.Context) error {
	c := r.base.ConnConfig.Copy()
	var open atomic.Int32
	r.supervisor.Supervise(c)
	r.budget.count(c, &open)

	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return pg.Fault(err)
	}

	return conn.Close(ctx)
}
