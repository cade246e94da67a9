// Package transfer knows how whole tables leave a project's database and how rows come in: files of values separated by
// commas or tabs, lines of JSON, and sheets of workbooks.
//
// It runs as the project's owner. A file of any size takes little memory: it goes by row by row. An import is one
// transaction, so that what is cut off leaves nothing. Who may call, and how bytes come and go, is the
// interface's business.
package transfer

import (
	"time"

	"socle/internal/fault"
)

// The formats.
const (
	CSV   = "csv"
	TSV   = "tsv"
	JSONL = "jsonl"
)

const (
	exportTime = time.Hour        // for a table to leave
	importTime = 30 * time.Minute // for a file's rows to be stored, once it is here
	batchTime  = time.Minute      // for some of them: code of the user's may run there

	// MaxFile is how many bytes a file to import has at most.
	MaxFile = 2 << 30

	maxColumns   = 1600    // that a table of PostgreSQL has
	maxRecord    = 8 << 20 // bytes of a row
	keptRejected = 1000    // rows whose rejection is reported one by one
	mostRefused  = 10_000  // rows that the database itself may refuse before an import is given up
)

// ImportTime is how long an import can take after its file has arrived.
const ImportTime = importTime

// Options say how a file is read and what becomes of it.
type Options struct {
	Format    string
	Delimiter byte   // between values; 0 is the format's own
	Null      string // text without quotes that means null
	Encoding  string // a name of [Encodings]
	Header    bool   // the first row names the columns
	Skip      bool   // go on after a bad row
	DryRun    bool   // undo everything at the end
	Sheet     string // of a workbook; "" is the first one

	Mode       string   // Insert, Upsert or Ignore; "" is Insert
	OnConflict []string // the columns by which rows are told apart; none: the primary key
}

// Imported is what became of a file.
type Imported struct {
	Table    string           `json:"table" doc:"Its full name." example:"public.orders"`
	TableID  *uint32          `json:"tableId" nullable:"true" doc:"Null after a dry run that would have made one."`
	Columns  []ImportedColumn `json:"columns" doc:"Those that the file has values for."`
	Rows     int64            `json:"rows" doc:"Rows that were stored, or would have been. With mode=ignore, without those that were there."`
	Rejected int64            `json:"rejected" doc:"Rows that were not."`
	Lines    []Rejected       `json:"rejectedLines" doc:"The first 1000 of these."`
	DryRun   bool             `json:"dryRun"`
}

// ImportedColumn is a column that a file has values for.
type ImportedColumn struct {
	Name   string `json:"name"`
	Header string `json:"header" doc:"What the file calls it; empty if it has no header."`
	Type   string `json:"type" doc:"Of a new table's column; empty for a table that was there."`
}

// Rejected is a row that was not stored.
type Rejected struct {
	Line    int64   `json:"line" doc:"Of the file, from 1, where the row begins."`
	Column  *string `json:"column" nullable:"true"`
	Code    string  `json:"code" doc:"Stable snake_case word."`
	Message string  `json:"message"`
}

// fatal is a rejection that ends an import whatever its options say.
func (r Rejected) fatal(lines []Rejected, total int64) error {
	f := fault.OnField(fault.Unprocessable, "file", r.Code, "can't be imported: line %d %s", r.Line, r.Message)
	f.Extra = map[string]any{"rejected": total, "rejectedLines": lines}

	return f
}

// ofUser reports whether a SQLSTATE is one by which values or code of the user's fail.
func ofUser(state string) bool {
	if state == "" {
		return false
	}

	switch state[:2] {
	case "0A", "21", "22", "23", "2F", "38", "39", "42", "44", "54", "P0":
		return true
	}

	return false
}
