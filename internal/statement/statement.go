// Package statement runs the SQL that a project's developers write, and keeps who ran what.
//
// It runs on the login of the project's owner, one transaction for a query, on a connection that nobody uses
// afterwards: what a statement does to its session ends with it. How long a query takes, and how much of its
// answer is kept, is bounded by us and by no setting of the session. Who may run one is the interface's business.
package statement

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Query is what is to run. Limits have been judged before.
type Query struct {
	Text       string
	Parameters []jsontext.Value // of the one statement that Text is then
	ReadOnly   bool             // nothing is kept, and most writes are refused
	Timeout    time.Duration
	MaxRows    int // of each result
}

// Answer is what the statements of a query gave.
type Answer struct {
	Results    []Result `json:"results" doc:"One for each statement, in order."`
	DurationMs float64  `json:"durationMs"`
}

// Result is what one statement gave.
type Result struct {
	Command   string         `json:"command" doc:"PostgreSQL's word for what was done; empty if rows were left out." example:"INSERT 0 3"`
	Columns   []ResultColumn `json:"columns"`
	Rows      Rows           `json:"rows" doc:"Each a list of values in the order of the columns."`
	RowCount  *int64         `json:"rowCount" nullable:"true" doc:"Rows that were returned or changed; null if that is not known, since rows were left out."`
	Truncated bool           `json:"truncated" doc:"There are more rows than were asked for, or than an answer holds."`

	kept int // rows
}

// ResultColumn is a column of a result.
type ResultColumn struct {
	Name string `json:"name"`
	Type string `json:"type" example:"integer"`
}

// DefaultTimeout, MaxTimeout, DefaultRows and MaxRows bound a query.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 30 * time.Second
	DefaultRows    = 1000
	MaxRows        = 10_000

	maxBytes         = 10 << 20 // of the rows of an answer, as JSON; rows beyond that are left out
	maxRow           = 32 << 20 // of one row as the server sends it
	maxResultColumns = 50_000   // of all results
)
