// Package transfer imports files into tables of a project's database and exports tables as files:
// values separated by commas or tabs, lines of JSON, and sheets of workbooks.
//
// It runs as the project's owner. It streams rows, so that files of any size need little memory. An
// import is a single transaction: an interrupted import has no effect. Package api authorizes
// callers and transports the bytes.
package transfer

import (
	"time"

	"github.com/socle-dev/socle/internal/fault"
)

// Formats of files.
const (
	CSV   = "csv"
	TSV   = "tsv"
	JSONL = "jsonl"
)

const (
	exportTimeout = time.Hour        // for a whole table
	importTimeout = 30 * time.Minute // for storing the rows of a received file
	batchTimeout  = time.Minute      // for one batch, which may run user code

	// MaxFileBytes is the maximum size of a file to import, in bytes.
	MaxFileBytes = 2 << 30

	maxColumns         = 1600    // PostgreSQL's limit per table
	maxRecord          = 8 << 20 // bytes of a row
	maxReported        = 1000    // limit of rejected rows that are reported individually
	maxDatabaseRejects = 10_000  // limit of rows that PostgreSQL may reject before an import fails
)

// ImportTimeout bounds the duration of an import after its file has been received.
const ImportTimeout = importTimeout

// Options select how a file is parsed and imported.
type Options struct {
	Format    string
	Delimiter byte   // between values; 0 means the format's default
	Null      string // unquoted text that means null
	Encoding  string // key of [Encodings]
	Header    bool   // first row has the column names
	Skip      bool   // continue after rejected rows
	DryRun    bool   // roll back at the end
	Sheet     string // of a workbook; "" means the first

	Mode       string   // Insert, Upsert or Ignore; "" means Insert
	OnConflict []string // columns of the conflict target; empty means the primary key
}

// Imported is the result of an import.
type Imported struct {
	Table    string           `json:"table" doc:"Full name of the table." example:"public.orders"`
	TableID  *uint32          `json:"tableId" nullable:"true" doc:"Null after a dry run that would have created the table."`
	Columns  []ImportedColumn `json:"columns" doc:"Columns that have values in the file."`
	Rows     int64            `json:"rows" doc:"Number of rows stored, or that a dry run would have stored. With mode=ignore, existing rows are not counted."`
	Rejected int64            `json:"rejected" doc:"Number of rejected rows."`
	Lines    []Rejected       `json:"rejectedLines" doc:"The first 1000 rejected rows."`
	DryRun   bool             `json:"dryRun"`
}

// ImportedColumn is a column that has values in the file.
type ImportedColumn struct {
	Name   string `json:"name"`
	Header string `json:"header" doc:"Name of the column in the file; empty without a header."`
	Type   string `json:"type" doc:"Type of a new table's column; empty for an existing table."`

	date bool // its type has a date
}

// Rejected is a row that was not stored.
type Rejected struct {
	Line    int64   `json:"line" doc:"Line of the file, from 1, on which the row begins."`
	Column  *string `json:"column" nullable:"true"`
	Code    string  `json:"code" doc:"Stable snake_case word."`
	Message string  `json:"message"`
}

// fatal returns the error for a rejected row that ends the import. total is 0 for a header, and for
// a row that is read before the import.
func (r Rejected) fatal(lines []Rejected, total int64) error {
	f := fault.OnField(fault.Unprocessable, "file", r.Code, "can't be imported: line %d %s", r.Line, r.Message)
	if total > 0 {
		f.Extra = map[string]any{"rejected": total, "rejectedLines": lines}
	}

	return f
}

// blamesUser reports whether the class of a SQLSTATE blames the user's values or code.
func blamesUser(state string) bool {
	if state == "" {
		return false
	}

	switch state[:2] {
	case "0A", "21", "22", "23", "2F", "38", "39", "42", "44", "54", "P0":
		return true
	}

	return false
}
