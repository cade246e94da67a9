package platform

import (
	"context"

	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// SlowStatements are the statements of a project's database that took most time in all, if PostgreSQL counts that.
type SlowStatements struct {
	Available  bool        `json:"available"`
	Reason     string      `json:"reason" doc:"Why they are not available; empty if they are."`
	Statements []Statement `json:"statements"`
}

// Statement is a statement with its values taken out.
type Statement struct {
	Text      string  `json:"text" doc:"The first thousand characters."`
	Calls     int64   `json:"calls"`
	Rows      int64   `json:"rows"`
	TotalTime float64 `json:"totalTime" doc:"Milliseconds."`
	MeanTime  float64 `json:"meanTime" doc:"Milliseconds."`
}

// statementsLoaded says whether PostgreSQL has loaded what counts statements, for all of its databases at once.
const statementsLoaded = `'pg_stat_statements' = any (regexp_split_to_array(current_setting('shared_preload_libraries'), '[ ,"]+'))`

// CountStatements makes readable what PostgreSQL counts of statements, if it counts them. The extension is in the platform's database alone, which
// no project reaches: what it shows is of all databases.
func CountStatements(ctx context.Context, q pg.Querier) error {
	// To say what is available, PostgreSQL reads a file of each extension: that comes last.
	can, err := pg.Value[bool](ctx, q, `
		select `+statementsLoaded+` and not exists (select from pg_extension where extname = 'pg_stat_statements')
			and exists (select from pg_available_extensions where name = 'pg_stat_statements')`)
	if err != nil || !can {
		return err
	}

	_, err = q.Exec(ctx,
		"create schema if not exists statements; create extension if not exists pg_stat_statements schema statements")
	return pg.Fault(err)
}

// StatementsAreCounted reports whether PostgreSQL has loaded what counts statements, and whether it could.
func (s *Store) StatementsAreCounted(ctx context.Context) (loaded, installed bool, err error) {
	now, err := pg.One[struct{ Loaded, Installed bool }](ctx, s.q, `
		select `+statementsLoaded+
		` as loaded, exists (select from pg_available_extensions where name = 'pg_stat_statements') as installed`)
	return now.Loaded, now.Installed, err
}

// GetSlowStatements returns those of a project's database, without those of the platform's own login.
func (s *Store) GetSlowStatements(ctx context.Context, database string) (SlowStatements, error) {
	none := SlowStatements{Statements: []Statement{}}

	loaded, _, err := s.StatementsAreCounted(ctx)
	if err != nil {
		return none, err
	}

	if !loaded {
		none.Reason = "PostgreSQL does not load pg_stat_statements when it starts (shared_preload_libraries)."
		return none, nil
	}

	schema, err := pg.Value[string](ctx, s.q, `
		select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'`)
	if fault.Is(err, fault.NotFound) {
		none.Reason = "The extension pg_stat_statements is not installed in the platform's database."
		return none, nil
	}
	if err != nil {
		return none, err
	}

	all, err := pg.All[Statement](ctx, s.q, `
		select left(s.query, 1000) as text, s.calls, s.rows, s.total_exec_time as total_time, s.mean_exec_time as mean_time
		from `+pg.Quote(schema, "pg_stat_statements")+`(true) s
		join pg_database d on d.oid = s.dbid
		join pg_roles r on r.oid = s.userid
		where d.datname = @database and not r.rolsuper
		order by s.total_exec_time desc limit 20`, pgx.StrictNamedArgs{"database": database})

	return SlowStatements{Available: true, Statements: all}, err
}
