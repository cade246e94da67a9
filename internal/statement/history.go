package statement

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	maxHistory     = 1000   // per project; older ones are deleted
	maxHistoryText = 10_000 // characters per query
)

// Record is a query history entry.
type Record struct {
	UUID       uuid.UUID `json:"uuid"`
	Query      string    `json:"query" doc:"The first 10,000 characters, including any secrets in the text, but without parameters. A text that names the vault is without its strings."`
	ReadOnly   bool      `json:"readOnly"`
	RunBy      uuid.UUID `json:"runBy" doc:"User who ran the query."`
	StartedAt  time.Time `json:"startedAt"`
	DurationMs *float64  `json:"durationMs" nullable:"true" doc:"Null while the query runs, or if the server crashed meanwhile."`
	Rows       *int64    `json:"rows" nullable:"true" doc:"Number of rows that all statements returned or changed, as far as known; null if the query failed."`
	ErrorCode  *string   `json:"errorCode" nullable:"true" doc:"SQLSTATE of PostgreSQL, or an error code of Socle; null if the query succeeded or is running."`
}

// Run runs a query on behalf of user. It records the query before and after. It fails with
// Unprocessable on query, parameters or timeout_ms.
func Run(ctx context.Context, p *projectdb.Project, user uuid.UUID, q Query) (Answer, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Answer{}, err
	}

	if err := recordStart(ctx, p, id, user, q); err != nil {
		return Answer{}, err
	}

	start := time.Now()
	answer, failure := run(ctx, p, q)
	duration := float64(time.Since(start).Microseconds()) / 1000

	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()

	if err := recordEnd(endCtx, p, id, duration, answer.Results, failure); err != nil && failure != nil {
		return Answer{}, fmt.Errorf("%w (recording it failed: %w)", failure, err)
	}

	// A failure to record the outcome does not fail a query that has been committed; the history
	// has the start.
	answer.DurationMs = duration
	return answer, failure
}

// recordStart records a query in the history and the audit log before it runs, so that none runs
// unrecorded.
func recordStart(ctx context.Context, p *projectdb.Project, id, user uuid.UUID, q Query) error {
	return p.InTx(ctx, func(tx pgx.Tx) error {
		_, err := pg.Exec(ctx, tx, `
			insert into socle.queries (uuid, query, read_only, run_by) values (@id, left(@query, @kept), @read_only, @user)`,
			pgx.StrictNamedArgs{
				"id": id, "query": withoutSecrets(q.Text), "kept": maxHistoryText,
				"read_only": q.ReadOnly, "user": user,
			})
		return err
	})
}

// recordEnd records a query's outcome and deletes old records.
func recordEnd(
	ctx context.Context, p *projectdb.Project, id uuid.UUID, duration float64, results []Result, failure error,
) error {
	var rows *int64
	var code *string
	if failure == nil {
		rows = new(int64)
		for _, r := range results {
			if r.RowCount != nil {
				*rows += *r.RowCount
			}
		}
	} else {
		word := fault.Of(failure).CodeWord()
		if state := pg.State(failure); state != "" {
			word = state
		}

		code = &word
	}

	return pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		_, err := pg.Exec(ctx, tx, `
			with forgotten as (
				delete from socle.queries where uuid in (select uuid from socle.queries order by uuid desc offset @kept)
			)
			update socle.queries set duration_ms = @took, rows = @rows, error_code = @code where uuid = @id`,
			pgx.StrictNamedArgs{"kept": maxHistory, "took": duration, "rows": rows, "code": code, "id": id})
		return err
	})
}

const recordColumns = `uuid, query, read_only, run_by, started_at, duration_ms, rows, error_code`

// List returns a page of the query history, sorted by startedAt, durationMs or rows, and the total
// number.
func List(ctx context.Context, p *projectdb.Project, page pg.Page) ([]Record, int64, error) {
	return pg.List[Record](ctx, p.Trusted(), pg.Listing{
		Columns: recordColumns,
		From:    `socle.queries`,
		Sorts:   map[string]string{"startedAt": "started_at", "durationMs": "duration_ms", "rows": "rows"},
		Tie:     "uuid",
	}, page, nil)
}
