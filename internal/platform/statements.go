package platform

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// SlowStatements holds the statements with the highest total time in a project's database, if
// PostgreSQL records them.
type SlowStatements struct {
	Available  bool        `json:"available"`
	Reason     string      `json:"reason" doc:"Why they are unavailable; empty if available."`
	Statements []Statement `json:"statements"`
}

// Statement is a normalized statement, without values.
type Statement struct {
	Text      string  `json:"text" doc:"First 1000 characters."`
	Calls     int64   `json:"calls"`
	Rows      int64   `json:"rows"`
	TotalTime float64 `json:"totalTime" doc:"Milliseconds."`
	MeanTime  float64 `json:"meanTime" doc:"Milliseconds."`
}

// statementsLoaded reports whether PostgreSQL has loaded pg_stat_statements, which records all
// databases.
const statementsLoaded = `'pg_stat_statements' = any (regexp_split_to_array(current_setting('shared_preload_libraries'), '[ ,"]+'))`

// EnableStatementStats creates the extension pg_stat_statements in the platform database if
// PostgreSQL has loaded it. Its view covers all databases, so it stands only in the platform
// database, which projects cannot reach.
func EnableStatementStats(ctx context.Context, q pg.Querier) error {
	// The check of pg_available_extensions comes last, because it reads a file for each extension.
	available, err := pg.Value[bool](ctx, q, `
		select `+statementsLoaded+` and not exists (select from pg_extension where extname = 'pg_stat_statements')
			and exists (select from pg_available_extensions where name = 'pg_stat_statements')`)
	if err != nil || !available {
		return err
	}

	_, err = q.Exec(ctx,
		"create schema if not exists statements; create extension if not exists pg_stat_statements schema statements")
	return pg.Fault(err)
}

// StatementStatsStatus reports whether PostgreSQL has loaded pg_stat_statements, and whether the
// extension is available.
func (s *Store) StatementStatsStatus(ctx context.Context) (isLoaded, isInstalled bool, err error) {
	state, err := pg.One[struct{ Loaded, Installed bool }](ctx, s.q, `
		select `+statementsLoaded+
		` as loaded, exists (select from pg_available_extensions where name = 'pg_stat_statements') as installed`)
	return state.Loaded, state.Installed, err
}

// GetSlowStatements returns the slowest statements in a project's database, except superusers'
// statements.
func (s *Store) GetSlowStatements(ctx context.Context, database string) (SlowStatements, error) {
	result := SlowStatements{Statements: []Statement{}}

	isLoaded, _, err := s.StatementStatsStatus(ctx)
	if err != nil {
		return result, err
	}

	if !isLoaded {
		result.Reason = "PostgreSQL does not load pg_stat_statements at startup (shared_preload_libraries)."
		return result, nil
	}

	schema, err := pg.Value[string](ctx, s.q, `
		select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'`)
	if fault.Is(err, fault.NotFound) {
		result.Reason = "The extension pg_stat_statements is not installed in the platform database."
		return result, nil
	}
	if err != nil {
		return result, err
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
