package api

import (
	"context"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"socle/internal/platform"
	"socle/internal/statement"
	"socle/internal/tenant"
)

func (s *Server) registerSQL() {
	s.registry.RegisterTypeAlias(reflect.TypeFor[statement.Rows](), reflect.TypeFor[[][]any]())
	within(s, runSQL, s.runSQL, nil)
	within(s, listQueries, s.listQueries, nil)
}

// AnyValue is any JSON value, as written.
type AnyValue struct{ jsontext.Value }

// Schema returns a schema without constraints.
func (AnyValue) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "Any value of JSON."}
}

var runSQL = Operation{
	ID: "runSQL", Method: "POST", Path: "/sql", Summary: "Run SQL", Success: 200,
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 413, 422, 500},
	Timeout: statement.MaxTimeout + defaultTimeout + defaultTimeout, Destructive: true,
	Notes: "Runs as the project's owner, all statements in one transaction, which is undone unless `read_only` is false. " +
		"If the database refuses a statement, `metadata.postgres` has its own words: `message`, `detail`, `hint`, `context`, `sqlstate`, " +
		"`position` (the character of the query, from 1; 0 if unknown) and `statement` (from 1). " +
		"Statements that end the transaction (BEGIN, COMMIT, ROLLBACK, SAVEPOINT …) and COPY are refused. The text is kept in the history of the project.",
}

type runSQLInput struct {
	Body struct {
		Query      string     `json:"query" minLength:"1" maxLength:"500000" doc:"Statements with semicolons between them."`
		Parameters []AnyValue `json:"parameters,omitempty" maxItems:"1000" doc:"Values of $1, $2 … of a single statement: text, numbers, booleans, null, and JSON for what PostgreSQL reads as JSON."`
		ReadOnly   *bool      `json:"read_only,omitempty" doc:"True if it is not given."`
		TimeoutMs  *int       `json:"timeout_ms,omitempty" minimum:"1" maximum:"30000" doc:"Milliseconds; 10000 if it is not given."`
		MaxRows    *int       `json:"max_rows,omitempty" minimum:"1" maximum:"10000" doc:"Rows of each result; 1000 if it is not given."`
		ProjectInBody
	}
}

// isHarmless reports whether the statements are read-only.
func (in *runSQLInput) isHarmless() bool { return in.Body.ReadOnly == nil || *in.Body.ReadOnly }

func (s *Server) runSQL(ctx context.Context, p *tenant.Project, in *runSQLInput) (statement.Answer, error) {
	b := in.Body
	q := statement.Query{
		Text:     b.Query,
		ReadOnly: in.isHarmless(),
		Timeout:  statement.DefaultTimeout,
		MaxRows:  statement.DefaultRows,
	}

	for _, v := range b.Parameters {
		q.Parameters = append(q.Parameters, v.Value)
	}

	if b.TimeoutMs != nil {
		q.Timeout = time.Duration(*b.TimeoutMs) * time.Millisecond
	}
	if b.MaxRows != nil {
		q.MaxRows = *b.MaxRows
	}

	return statement.Run(ctx, p, caller(ctx).User, q)
}

var listQueries = Operation{
	ID: "listQueries", Method: "GET", Path: "/sql/history", Summary: "List the SQL that was run",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 500},
	Notes: "The last 1000 queries of the project. They are kept as they were written: a password in one is a password in the history.",
}

type listQueriesInput struct {
	PageQuery
	Sort string `query:"sort" enum:"startedAt,durationMs,rows" default:"startedAt"`
}

func (s *Server) listQueries(
	ctx context.Context, p *tenant.Project, in *listQueriesInput,
) (Answer[[]statement.Record, PageMetadata], error) {
	page := in.page(in.Sort)
	records, total, err := statement.List(ctx, p, page)
	return listOf(records, page, total), err
}
