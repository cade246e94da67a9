package job

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
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

const (
	indexQueue      = "indexes"
	tableJobTimeout = 50 * time.Minute // less than River's rescue threshold of one hour
)

// indexArgs describe the index to build.
type indexArgs struct {
	Project uuid.UUID       `json:"project"`
	Table   uint32          `json:"table"`
	Index   schema.NewIndex `json:"index"`
}

// Kind returns the kind of the job.
func (indexArgs) Kind() string { return "index" }

// InsertOpts retries after lock conflicts and server restarts.
func (indexArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: indexQueue, MaxAttempts: 5}
}

type indexWorker struct {
	river.WorkerDefaults[indexArgs]
	pool     *pgxpool.Pool // platform database
	projects *tenant.Registry
	log      *slog.Logger
}

// Work builds the index. Clients see the returned error, so it contains only the detail of a fault.
func (w *indexWorker) Work(ctx context.Context, job *river.Job[indexArgs]) error {
	ctx, cancel := context.WithTimeout(ctx, tableJobTimeout)
	defer cancel()

	err := schema.BuildIndex(ctx, w.projects.Open(job.Args.Project).Owner(), job.Args.Table, job.Args.Index)
	if err == nil {
		return completeJob(ctx, w.pool, job) // at once: until then the index counts as being built
	}

	w.log.Error("build index", "project", job.Args.Project, "table", job.Args.Table, "error", err)

	f := fault.Of(err)
	switch {
	case f.Kind == fault.Unprocessable, f.Kind == fault.NotFound,
		f.Kind == fault.Conflict && f.CodeWord() != "busy":
		return river.JobCancel(errors.New(f.Detail)) // a retry would fail alike
	case f.Kind == fault.Internal:
		return errors.New("something went wrong on the server")
	}

	return errors.New(f.Detail)
}

// CreateIndex enqueues the build of an index. It fails with Conflict on name if an index of that
// name exists or is being built.
func (q *Queue) CreateIndex(ctx context.Context, p *tenant.Project, table uint32, n schema.NewIndex) error {
	project := p.UUID
	return q.Store.InTx(ctx, func(tx *platform.Store) error {
		if _, err := pg.Exec(ctx, tx.Tx(), `select pg_advisory_xact_lock(hashtextextended(@key, 0))`,
			pgx.StrictNamedArgs{
				"key": strings.Join([]string{
					"index", project.String(), strconv.FormatUint(uint64(table), 10), n.Name,
				}, " "),
			}); err != nil {
			return err
		}

		building, err := pg.Value[bool](ctx, tx.Tx(), `
			select exists (select from river.river_job j
				where j.kind = 'index' and j.args ->> 'project' = @project::text and (j.args ->> 'table')::bigint = @table
					and j.args -> 'index' ->> 'name' = @name and j.state not in ('completed', 'cancelled', 'discarded'))`,
			pgx.StrictNamedArgs{"project": project, "table": int64(table), "name": n.Name})
		if err != nil {
			return err
		}

		if building {
			return fault.OnField(fault.Conflict, "name", "already_exists",
				"is the name of an index that is being built")
		}

		// The index exists before its job is completed, so one of the two checks finds it.
		if err := schema.CheckIndexName(ctx, p.Trusted(), table, n.Name); err != nil {
			return err
		}

		_, err = q.client.InsertTx(ctx, tx.Tx(), indexArgs{Project: project, Table: table, Index: n}, nil)
		return pg.Fault(err)
	})
}

// ListIndexes returns the indexes of a table that are being built or failed to build: the latest
// attempt per name.
func (q *Queue) ListIndexes(ctx context.Context, project uuid.UUID, table uint32) ([]schema.Index, error) {
	tries, err := pg.All[struct {
		Index  []byte
		Failed bool
		Error  string
	}](ctx, q.Pool, `
		select index, state in ('cancelled', 'discarded') as failed, error
		from (
			select distinct on (j.args -> 'index' ->> 'name') j.args -> 'index' as index, j.state,
				coalesce(j.errors[array_upper(j.errors, 1)] ->> 'error', '') as error
			from river.river_job j
			where j.kind = 'index' and j.args ->> 'project' = @project::text and (j.args ->> 'table')::bigint = @table
			order by j.args -> 'index' ->> 'name', j.id desc
		) latest
		where state <> 'completed'`, pgx.StrictNamedArgs{"project": project, "table": int64(table)})
	if err != nil {
		return nil, err
	}

	all := make([]schema.Index, len(tries))
	for i, try := range tries {
		var n schema.NewIndex
		if err := json.Unmarshal(try.Index, &n); err != nil {
			return nil, err
		}

		all[i] = n.Planned("building", "")
		if try.Failed {
			all[i] = n.Planned("failed", strings.TrimPrefix(try.Error, "JobCancelError: "))
		}
	}

	return all, nil
}

// ForgetIndex deletes the failed builds of an index.
func (q *Queue) ForgetIndex(ctx context.Context, project uuid.UUID, table uint32, name string) error {
	return q.Store.InTx(ctx, func(tx *platform.Store) error {
		_, err := pg.Exec(ctx, tx.Tx(), `
			delete from river.river_job
			where kind = 'index' and args ->> 'project' = @project::text and (args ->> 'table')::bigint = @table
				and args -> 'index' ->> 'name' = @name and state in ('cancelled', 'discarded')`,
			pgx.StrictNamedArgs{"project": project, "table": int64(table), "name": name})
		return err
	})
}
