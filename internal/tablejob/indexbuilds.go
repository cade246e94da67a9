package tablejob

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/schema"
)

// indexArgs describe the index to build.
type indexArgs struct {
	Project uuid.UUID       `json:"project"`
	Table   uint32          `json:"table"`
	Index   schema.NewIndex `json:"index"`
}

// Kind returns the job kind.
func (indexArgs) Kind() string { return "index" }

// buildIndex builds an index. Clients see the returned error, so it contains only a fault's detail.
func (s *Service) buildIndex(ctx context.Context, job *queue.Job[indexArgs]) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	a := job.Args
	err := schema.BuildIndex(ctx, s.lifecycle.Registry.Open(a.Project).Owner(), a.Table, a.Index)
	if err == nil {
		return job.Complete(ctx) // at once: until then the index counts as being built
	}

	s.log.Error("build index", "project", a.Project, "table", a.Table, "error", err)

	return indexError(err)
}

// CreateIndex enqueues an index build. It fails with Conflict on name if such an index exists or is
// being built.
func (s *Service) CreateIndex(ctx context.Context, p *projectdb.Project, table uint32, n schema.NewIndex) error {
	project := p.UUID
	return s.lifecycle.Store.InTx(ctx, func(tx *platform.Store) error {
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

		_, err = s.queue.InsertTx(ctx, tx.Tx(), indexArgs{Project: project, Table: table, Index: n})
		return err
	})
}

// ListIndexes returns a table's indexes that are being built or failed to build: the latest attempt
// per name.
func (s *Service) ListIndexes(ctx context.Context, project uuid.UUID, table uint32) ([]schema.Index, error) {
	tries, err := pg.All[struct {
		Index  []byte
		Failed bool
		Error  string
	}](ctx, s.queue.Pool, `
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

// ForgetIndex deletes an index's failed builds.
func (s *Service) ForgetIndex(ctx context.Context, project uuid.UUID, table uint32, name string) error {
	return s.lifecycle.Store.InTx(ctx, func(tx *platform.Store) error {
		_, err := pg.Exec(ctx, tx.Tx(), `
			delete from river.river_job
			where kind = 'index' and args ->> 'project' = @project::text and (args ->> 'table')::bigint = @table
				and args -> 'index' ->> 'name' = @name and state in ('cancelled', 'discarded')`,
			pgx.StrictNamedArgs{"project": project, "table": int64(table), "name": name})
		return err
	})
}
