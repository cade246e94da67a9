package job

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
	"socle/internal/schema"
	"socle/internal/tenant"
)

const compactionQueue = "compactions"

// compactionArgs identify the table to compact. Next is the next transaction ID at the time of the
// request: rows deleted before it are removed.
type compactionArgs struct {
	Project uuid.UUID `json:"project" river:"unique"`
	Table   uint32    `json:"table" river:"unique"`
	Next    int64     `json:"next"`
}

// Kind returns the kind of the job.
func (compactionArgs) Kind() string { return "compaction" }

// InsertOpts allows one unfinished job per table and retries after lock conflicts and server
// restarts.
func (compactionArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       compactionQueue,
		MaxAttempts: 5,
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByState: unfinished},
	}
}

type compactionWorker struct {
	river.WorkerDefaults[compactionArgs]
	pool      *pgxpool.Pool // platform database
	lifecycle tenant.Lifecycle
	log       *slog.Logger
}

// Work compacts the table. Clients see the returned error, so it contains only the detail of a
// fault.
func (w *compactionWorker) Work(ctx context.Context, job *river.Job[compactionArgs]) error {
	limited, cancel := context.WithTimeout(ctx, tableJobTimeout)
	defer cancel()

	err := compact(limited, w.lifecycle.Registry.Open(job.Args.Project), job.Args)
	if err != nil {
		w.log.Error("compact table", "project", job.Args.Project, "table", job.Args.Table, "error", err)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return river.JobCancel(errors.New("the compaction took longer than " + tableJobTimeout.String()))
	}
	if err != nil {
		return compactionError(err)
	}

	if _, err := w.lifecycle.GetSize(ctx, job.Args.Project); err != nil { // the quota may allow writes again
		w.log.Warn("measure database", "project", job.Args.Project, "error", err)
	}

	return completeJob(ctx, w.pool, job)
}

func compact(ctx context.Context, p *tenant.Project, a compactionArgs) error {
	if err := schema.AwaitSnapshots(ctx, p.Trusted(), a.Next); err != nil {
		return err
	}

	return schema.CompactTable(ctx, p.Owner(), a.Table)
}

// compactionError returns the error to store with a failed job, which clients see.
func compactionError(err error) error {
	switch f := fault.Of(err); f.Kind {
	case fault.Unprocessable, fault.NotFound:
		return river.JobCancel(errors.New(f.Detail)) // a retry would fail alike
	case fault.Internal:
		return errors.New("something went wrong on the server")
	default:
		return errors.New(f.Detail)
	}
}

// Compaction is the state of the latest compaction of a table.
type Compaction struct {
	Status    string     `json:"status" enum:"waiting,running,completed,failed"`
	Progress  *int       `json:"progress" nullable:"true" doc:"Percentage of the table's pages that have been read; the indexes are rebuilt afterwards. Null if unknown."`
	Error     string     `json:"error" doc:"Why it failed, or why it waits for a retry; otherwise empty."`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   *time.Time `json:"endedAt" nullable:"true"`
}

// CreateCompaction enqueues the compaction of a table. It fails with Conflict, code busy, if one is
// in progress.
func (q *Queue) CreateCompaction(ctx context.Context, p *tenant.Project, table uint32) (Compaction, error) {
	next, err := schema.NextTransaction(ctx, p.Trusted())
	if err != nil {
		return Compaction{}, err
	}

	var c Compaction
	err = q.Store.InTx(ctx, func(tx *platform.Store) error {
		inserted, err := q.client.InsertTx(ctx, tx.Tx(), compactionArgs{p.UUID, table, next}, nil)
		if err != nil {
			return pg.Fault(err)
		}

		if inserted.UniqueSkippedAsDuplicate {
			return fault.New(fault.Conflict, "the table is already being compacted").WithCode("busy")
		}

		c = Compaction{Status: "waiting", CreatedAt: inserted.Job.CreatedAt}
		return nil
	})

	return c, err
}

// GetCompaction returns the latest compaction of a table. Finished ones are kept for at least a
// day. It fails with NotFound if there is none.
func (q *Queue) GetCompaction(ctx context.Context, p *tenant.Project, table uint32) (Compaction, error) {
	c, err := pg.One[Compaction](ctx, q.Pool, `
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
