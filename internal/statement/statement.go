// Package statement runs SQL for a project's developers and records who ran it.
//
// It runs on the owner's login, or as a caller of the application, one transaction per query. It
// discards the connection afterwards, so that changes to the session end with the query. This
// package bounds the duration and the response size; no session setting affects these limits.
// Package api authorizes callers.
package statement

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/actor"
)

// Query is a query to run. The caller has validated the limits.
type Query struct {
	Text       string
	Parameters []jsontext.Value // require a single statement
	ReadOnly   bool             // roll back; PostgreSQL rejects most writes
	As         *actor.Actor     // anon, authenticated or an end user; nil: the project's owner
	Timeout    time.Duration
	MaxRows    int // per result
}

// Answer is a query's result.
type Answer struct {
	Results    []Result   `json:"results" doc:"One result per statement, in order."`
	Notes      []StepNote `json:"notes" nullable:"false" doc:"What was left out or changed. The result of a statement that is left out has no columns and no command."`
	DurationMs float64    `json:"durationMs"`
}

// Result is one statement's result.
type Result struct {
	Command   string         `json:"command" doc:"Command tag of PostgreSQL; empty if rows were omitted, or if PostgreSQL did not run the statement." example:"INSERT 0 3"`
	Columns   []ResultColumn `json:"columns"`
	Rows      Rows           `json:"rows" doc:"Arrays of values in the order of the columns."`
	RowCount  *int64         `json:"rowCount" nullable:"true" doc:"Number of rows returned or changed; null if unknown, since rows were omitted."`
	Truncated bool           `json:"truncated" doc:"Rows were omitted, beyond the requested number or the maximum size of a response."`

	numRows int // in Rows
}

// ResultColumn is a result column.
type ResultColumn struct {
	Name string `json:"name"`
	Type string `json:"type" example:"integer"`
}

// DefaultTimeout, MaxTimeout, DefaultRows and MaxRows are query limits.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 30 * time.Second
	DefaultRows    = 1000
	MaxRows        = 10_000

	maxBytes         = 10 << 20 // bytes per response in rows as JSON; further rows are omitted
	resultSize       = 200      // bytes per result without rows
	maxRow           = 32 << 20 // bytes per row in PostgreSQL's protocol
	maxResultColumns = 50_000   // in all results
)
