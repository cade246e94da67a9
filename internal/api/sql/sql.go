package sql

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/statement"
)

func (s *Server) registerSQL(p *operation.Pipeline) {
	operation.HandleInProject(p, runSQL, s.runSQL, nil)
	operation.HandleInProject(p, listQueries, s.listQueries, nil)
}

// AnyValue is any JSON value, as written.
type AnyValue struct{ jsontext.Value }

// Schema returns a schema without constraints.
func (AnyValue) Schema(operation.Registry) *operation.Schema {
	return &operation.Schema{Description: "Any JSON value."}
}

var runSQL = operation.Operation{
	ID: "runSQL", Method: "POST", Path: "/sql", Summary: "Run SQL", Success: 200,
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 413, 422, 500},
	Timeout:     statement.MaxTimeout + operation.DefaultTimeout + operation.DefaultTimeout,
	Destructive: operation.When((*runSQLInput).writes),
	Notes: "Runs all statements as the project's owner, or the caller in `as`, in one transaction, which is rolled back " +
		"unless `read_only` is false. `as` gives the statements the role and the claims of the rows API, so that " +
		"grants and policies decide about them. If the database rejects a statement, `metadata.postgres` has its report: `message`, `detail`, " +
		"`hint`, `context`, `sqlstate`, `statement` (from 1), `position` (character of the query, from 1; 0 if " +
		"unknown), its `line` and `column`. A BEGIN and its COMMIT are left out; other statements that end the transaction (ROLLBACK, " +
		"SAVEPOINT …) and COPY are refused. What only Supabase's platform has is left out or changed: `notes` says " +
		"what. The text is stored in the project's history.",
	Example: `{"query": "select title, price from books where price < $1", "parameters": [10]}`,
}

type runSQLInput struct {
	Body struct {
		Query      string     `json:"query" minLength:"1" maxLength:"500000" doc:"Statements, separated by semicolons."`
		Parameters []AnyValue `json:"parameters,omitempty" maxItems:"1000" doc:"Values of $1, $2 … for a single statement: text, numbers, booleans, null, or JSON for types that PostgreSQL reads as JSON."`
		ReadOnly   *bool      `json:"read_only,omitempty" doc:"Whether to refuse writes and roll back. Default: true."`
		TimeoutMs  *int       `json:"timeout_ms,omitempty" minimum:"1" maximum:"30000" doc:"Timeout in milliseconds. Default: 10000."`
		As         string     `json:"as,omitempty" minLength:"1" maxLength:"325" doc:"Caller of the application to run as: anon, authenticated, or user: and the UUID or e-mail address of an end user. Default: the project's owner."`
		MaxRows    *int       `json:"max_rows,omitempty" minimum:"1" maximum:"10000" doc:"Maximum number of rows per result. Default: 1000."`
		operation.ProjectInBody
	}
}

// writes reports whether the statements may change the database.
func (in *runSQLInput) writes() bool { return in.Body.ReadOnly != nil && !*in.Body.ReadOnly }

func (s *Server) runSQL(ctx context.Context, p *projectdb.Project, in *runSQLInput) (statement.Answer, error) {
	b := in.Body
	q := statement.Query{
		Text:     b.Query,
		ReadOnly: !in.writes(),
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

	if b.As != "" {
		caller, err := s.EndUsers.Caller(ctx, p.UUID, "as", b.As)
		if err != nil {
			return statement.Answer{}, err
		}

		q.As = &caller
	}

	return statement.Run(ctx, p, operation.Caller(ctx).User, q)
}

var listQueries = operation.Operation{
	ID: "listQueries", Method: "GET", Path: "/sql/history", Summary: "List SQL history",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 500},
	Notes: "The last 1000 queries of the project, as they were written: a password in a query is readable in the " +
		"history.",
}

type listQueriesInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"startedAt,durationMs,rows" default:"startedAt"`
}

func (s *Server) listQueries(
	ctx context.Context, p *projectdb.Project, in *listQueriesInput,
) (operation.Answer[[]statement.Record, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	records, total, err := statement.List(ctx, p, page)
	return operation.ListOf(records, page, total), err
}
