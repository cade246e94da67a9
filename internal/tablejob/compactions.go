package projectdb

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/schema"
)

// tableJobTimeout is less than River's rescue threshold of one hour.
const tableJobTimeout = 50 * time.Minute

// TableJobs are the long operations on tables that run as jobs: builds of indexes, and compactions.
type TableJobs struct {
	lifecycle Lifecycle
	queue     *queue.Queue
	log       *slog.Logger
}

// NewTableJobs registers the workers of the jobs.
func NewTableJobs(l Lifecycle, q *queue.Queue, log *slog.Logger) *TableJobs {
	t := &TableJobs{l, q, log}

	queue.Register(q, queue.Options{ // retried after lock conflicts and server restarts
		Workers:     queue.Workers{Queue: "compactions", PerServer: 4, PerAccount: 1},
		MaxAttempts: 5,
		Unique:      true, // per table
	}, t.compact)
	queue.Register(q, queue.Options{
		Workers:     queue.Workers{Queue: "indexes", PerServer: 4, PerAccount: 2},
		MaxAttempts: 5,
	}, t.buildIndex)

	return t
}

// compactionArgs identify the table to compact. Next is the next transaction ID at the time of the
// request: rows deleted before it are removed.
type compactionArgs struct {
	Project uuid.UUID `json:"project" river:"unique"`
	Table   uint32    `json:"table" river:"unique"`
	Next    int64     `json:"next"`
}

// Kind returns the kind of the job.
func (compactionArgs) Kind() string { return "compaction" }

// compact compacts a table. Clients see the returned error, so it contains only the detail of a
// fault.
func (t *TableJobs) compact(ctx context.Context, job *queue.Job[compactionArgs]) error {
	limited, cancel := context.WithTimeout(ctx, tableJobTimeout)
	defer cancel()

	a := job.Args
	err := compact(limited, t.lifecycle.Registry.Open(a.Project), a)
	if err != nil {
		t.log.Error("compact table", "project", a.Project, "table", a.Table, "error", err)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return queue.Cancel(errors.New("the compaction took longer than " + tableJobTimeout.String()))
	}
	if err != nil {
		return compactionError(err)
	}

	if _, err := t.lifecycle.GetSize(ctx, a.Project); err != nil { // the quota may allow writes again
		t.log.Warn("measure database", "project", a.Project, "error", err)
	}

	return job.Complete(ctx)
}

func compact(ctx context.Context, p *Project, a compactionArgs) error {
	if err := schema.AwaitSnapshots(ctx, p.Trusted(), a.Next); err != nil {
		return err
	}

	return schema.CompactTable(ctx, p.Owner(), a.Table)
}

// compactionError returns the error to store with a failed job, which clients see.
func compactionError(err error) error {
	switch f := fault.Of(err); f.Kind {
	case fault.Unprocessable, fault.NotFound:
		return queue.Cancel(errors.New(f.Detail)) // a retry would fail alike
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
func (t *TableJobs) CreateCompaction(ctx context.Context, p *Project, table uint32) (Compaction, error) {
	next, err := schema.NextTransaction(ctx, p.Trusted())
	if err != nil {
		return Compaction{}, err
	}

	var c Compaction
	err = t.lifecycle.Store.InTx(ctx, func(tx *platform.Store) error {
		inserted, err := t.queue.InsertTx(ctx, tx.Tx(), compactionArgs{p.UUID, table, next})
		if err != nil {
			return err
		}

		if inserted.Duplicate {
			return fault.New(fault.Conflict, "the table is already being compacted").WithCode("busy")
		}

		c = Compaction{Status: "waiting", CreatedAt: inserted.CreatedAt}
		return nil
	})

	return c, err
}

// GetCompaction returns the latest compaction of a table. Finished ones are kept for at least a
// day. It fails with NotFound if there is none.
func (t *TableJobs) GetCompaction(ctx context.Context, p *Project, table uint32) (Compaction, error) {
	c, err := pg.One[Compaction](ctx, t.queue.Pool, `
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
