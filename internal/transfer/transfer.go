// Package transfer imports files into tables in a project's database and exports tables as files:
// values separated by commas or tabs, JSON lines, and workbook sheets.
//
// It runs as the project's owner. It streams rows, so that even large files need little memory. An
// import is a single transaction: an interrupted import has no effect. Package api authorizes
// callers and transports the bytes.
package transfer

import (
	"time"

	"github.com/socle-dev/socle/internal/fault"
)

// File formats.
const (
	CSV   = "csv"
	TSV   = "tsv"
	JSONL = "jsonl"
	JSON  = "json" // an array, or lines: either is recognized in both formats
)

const (
	exportTimeout = time.Hour        // for a whole table
	importTimeout = 30 * time.Minute // for storing a received file's rows
	batchTimeout  = time.Minute      // for one batch, which may run user code

	// MaxFileBytes is the maximum import file size in bytes.
	MaxFileBytes = 2 << 30

	maxColumns         = 1600    // PostgreSQL's limit per table
	maxRecord          = 8 << 20 // bytes per row
	maxReported        = 1000    // rejected rows that are reported individually
	maxDatabaseRejects = 10_000  // rows that PostgreSQL may reject before an import fails
)

// ImportTimeout bounds the duration of an import after its file has been received.
const ImportTimeout = importTimeout

// Options select how a file is parsed and imported.
type Options struct {
	Format    string
	Delimiter byte   // between values; 0 means the format's default
	Null      string // unquoted text that means null
	Encoding  string // key in [Encodings]
	Header    bool   // first row has the column names
	Decimal   string // key in [decimalReadings]; "" means that the file's values decide

	// HeaderLine is the first row's line; lines before it are skipped. 0 means the first.
	HeaderLine int64

	Skip   bool   // continue after rejected rows
	DryRun bool   // roll back at the end
	Sheet  string // in a workbook; "" means the first

	Mode       string   // Insert, Upsert or Ignore; "" means Insert
	OnConflict []string // conflict target; empty means the primary key
}

// SetFormat sets the file format. It fails with Invalid on an option that the format does not have.
func (o *Options) SetFormat(format string) error {
	if o.Format = format; format == JSON {
		o.Format = JSONL
	}

	isText, isBook := o.Format == CSV || o.Format == TSV, o.Format == XLSX
	for _, option := range []struct {
		field   string
		set, ok bool
		formats string
	}{
		{"sheet", o.Sheet != "", isBook, "xlsx"},
		{"delimiter", o.Delimiter != 0, isText, "csv and tsv"},
		{"decimal", o.Decimal != "", isText || isBook, "csv, tsv and xlsx"},
		{"header_line", o.HeaderLine != 0, isText || isBook, "csv, tsv and xlsx"},
	} {
		if option.set && !option.ok {
			return fault.OnField(fault.Invalid, option.field, "not_applicable", "is for files of the format %s",
				option.formats)
		}
	}

	if o.HeaderLine != 0 && !o.Header {
		return fault.OnField(fault.Invalid, "header_line", "not_applicable", "needs a header")
	}

	return nil
}

// Imported is an import's result.
type Imported struct {
	Table    string           `json:"table" doc:"Full name of the table." example:"public.orders"`
	TableID  *uint32          `json:"tableId" nullable:"true" doc:"Null after a dry run that would have created the table."`
	Columns  []ImportedColumn `json:"columns" doc:"Columns that have values in the file."`
	Rows     int64            `json:"rows" doc:"Number of rows stored, or that a dry run would have stored. With mode=ignore, existing rows are not counted."`
	Rejected int64            `json:"rejected" doc:"Number of rejected rows."`
	Lines    []Rejected       `json:"rejectedLines" doc:"The first 1000 rejected rows."`
	Notes    []Note           `json:"notes" doc:"What the import decided where the file left it open: readings of numbers and dates, skipped columns, hidden parts of a workbook."`
	DryRun   bool             `json:"dryRun"`
}

// Note tells how an import understood a file where that was not evident.
type Note struct {
	Column  *string `json:"column" nullable:"true" doc:"Column of the table; null if the note is about the whole file."`
	Code    string  `json:"code" doc:"Stable snake_case word." example:"decimal_comma"`
	Message string  `json:"message"`
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

// blamesUser reports whether a SQLSTATE's class blames the user's values or code.
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
