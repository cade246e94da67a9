package tablejob

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/schema"
)

// compactionArgs identify the table to compact. Next is the next transaction ID when the request
// arrived: rows deleted before it are removed.
type compactionArgs struct {
	Project uuid.UUID `json:"project" river:"unique"`
	Table   uint32    `json:"table" river:"unique"`
	Next    int64     `json:"next"`
}

// Kind returns the job kind.
func (compactionArgs) Kind() string { return "compaction" }

// compact compacts a table. Clients see the returned error, so it contains only a fault's detail.
func (s *Service) compact(ctx context.Context, job *queue.Job[compactionArgs]) error {
	jobCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	a := job.Args
	err := compact(jobCtx, s.lifecycle.Registry.Open(a.Project), a)
	if err != nil {
		s.log.Error("compact table", "project", a.Project, "table", a.Table, "error", err)
	}
	if err != nil && jobCtx.Err() != nil && ctx.Err() == nil {
		return queue.Cancel(errors.New("the compaction took longer than " + timeout.String()))
	}
	if err != nil {
		return compactionError(err)
	}

	if _, err := s.lifecycle.GetSize(ctx, a.Project); err != nil { // the quota may allow writes again
		s.log.Warn("measure database", "project", a.Project, "error", err)
	}

	return job.Complete(ctx)
}

func compact(ctx context.Context, p *projectdb.Project, a compactionArgs) error {
	if err := schema.AwaitSnapshots(ctx, p.Trusted(), a.Next); err != nil {
		return err
	}

	return schema.CompactTable(ctx, p.Owner(), a.Table)
}

// Compaction is the state of a table's latest compaction.
type Compaction struct {
	Status    string     `json:"status" enum:"waiting,running,completed,failed"`
	Progress  *int       `json:"progress" nullable:"true" doc:"Percentage of the table's pages that have been read; the indexes are rebuilt afterwards. Null if unknown."`
	Error     string     `json:"error" doc:"Why it failed, or why it waits for a retry; otherwise empty."`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   *time.Time `json:"endedAt" nullable:"true"`
}

// CreateCompaction enqueues a table's compaction. It fails with Conflict, code busy, if one is in
// progress.
func (s *Service) CreateCompaction(ctx context.Context, p *projectdb.Project, table uint32) (Compaction, error) {
	next, err := schema.NextTransaction(ctx, p.Trusted())
	if err != nil {
		return Compaction{}, err
	}

	var c Compaction
	err = s.lifecycle.Store.InTx(ctx, func(tx *platform.Store) error {
		job, err := s.queue.InsertTx(ctx, tx.Tx(), compactionArgs{p.UUID, table, next})
		if err != nil {
			return err
		}

		if job.Duplicate {
			return fault.New(fault.Conflict, "the table is already being compacted").WithCode("busy")
		}

		c = Compaction{Status: "waiting", CreatedAt: job.CreatedAt}
		return nil
	})

	return c, err
}

// GetCompaction returns a table's latest compaction. Finished ones are kept for at least a day. It
// fails with NotFound if there is none.
func (s *Service) GetCompaction(ctx context.Context, p *projectdb.Project, table uint32) (Compaction, error) {
	c, err := pg.One[Compaction](ctx, s.queue.Pool, `
		select case when j.state = 'running' then 'running' when j.state = 'completed' then 'completed' when j.state in ('cancelled', 'discarded') then 'failed' else 'waiting' end as status,
			null::int as progress, j.created_at, j.finalized_at as ended_at,
			case when j.state in ('running', 'completed') then '' else regexp_replace(coalesce(j.errors[array_upper(j.errors, 1)] ->> 'error', ''), '^JobCancelError: ', '') end as error
		from river.river_job j
		where j.kind = 'compaction' and j.args ->> 'project' = @project::text and (j.args ->> 'table')::bigint = @table
		order by j.id desc limit 1`, pgx.StrictNamedArgs{"project": p.UUID, "table": int64(table)})
	if err == nil && c.Status == "running" {
		c.Progress, err = schema.CompactionProgress(ctx, p.Trusted(), table)
	}

	return c, err
}
