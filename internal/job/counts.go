package job

import (
	"context"
	"time"

	"socle/internal/pg"
)

// Counts are statistics of the queue.
type Counts struct {
	Waiting int64
	Running int64
	Failed  int64         // discarded in the last 24 hours
	Oldest  time.Duration // waiting time of the oldest runnable job
}

// Counts returns statistics of the queue.
func (q *Queue) Counts(ctx context.Context) (Counts, error) {
	return pg.One[Counts](ctx, q.Pool, `
		select count(*) filter (where state in ('available', 'pending', 'retryable', 'scheduled')) as waiting,
		       count(*) filter (where state = 'running') as running,
		       count(*) filter (where state = 'discarded' and finalized_at > now() - interval '24 hours') as failed,
		       coalesce(now() - min(scheduled_at) filter (where state = 'available' and scheduled_at <= now()), interval '0') as oldest
		from river.river_job`)
}
