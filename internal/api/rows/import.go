package rows

import (
	"context"
	"strings"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
	"github.com/socle-dev/socle/internal/transfer"
)

func (s *Server) registerTransfers(p *operation.Pipeline) {
	operation.HandleInProject(p, exportTable, s.exportTable, nil)
	operation.HandleInProject(p, importTable, s.importTable, nil)
	operation.HandleInProject(p, importRows, s.importRows, nil)
}

const importNotes = "The file is the raw body, or the part `file` of a multipart body: CSV, TSV, JSON (an array of " +
	"objects, or one per line), or a workbook (XLSX: its first visible sheet, or the one named by `sheet`), up to 2 " +
	"GiB. It is imported in one transaction: completely, or with `on_error=skip` without invalid rows, of which the " +
	"first 1000 are reported. The whole file decides how its numbers and dates are read; `notes` tells what was " +
	"decided, and what stayed text because it can be read in several ways."

var importTable = operation.Operation{
	ID: "importTable", Method: "POST", Path: "/tables/import", Summary: "Create a table from a file",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 409, 413, 422, 429, 500},
	Grows: operation.Always, Body: dataFile,
	Notes: importNotes +
		" The columns get the narrowest types that fit all values. The table is closed, like every new table.",
}

type importTableInput struct {
	Name   string `query:"name" maxLength:"63" doc:"Name of the new table. Default: the file's name without extension."`
	Schema string `query:"schema" maxLength:"63" default:"public"`
	ImportQuery
	operation.Upload
}

// ImportQuery has the options for parsing a data file.
type ImportQuery struct {
	Format    string  `query:"format" enum:"csv,tsv,json,jsonl,xlsx" doc:"Default: by the file's extension or media type."`
	Delimiter *string `query:"delimiter" maxLength:"1" minLength:"1" doc:"Separator of values. Default: a tab for TSV; for CSV a comma, or the semicolon, tab or bar of a header without a comma."`
	Null      string  `query:"null" maxLength:"20" doc:"Unquoted text that means null. Default: empty."`
	Encoding  string  `query:"encoding" enum:"utf-8,utf-16,windows-1252,iso-8859-1" default:"utf-8" doc:"Encoding of the text. A UTF-16 byte order mark is detected."`
	Sheet     string  `query:"sheet" maxLength:"31" doc:"Sheet of a workbook. Default: the first that is not hidden."`
	Header    string  `query:"header" enum:"true,false" default:"true" doc:"Whether the first row names the columns."`
	HeaderAt  int     `query:"header_line" minimum:"1" doc:"Line of the column names, if titles stand above them; for CSV, TSV and XLSX. Default: the first with values."`
	Decimal   string  `query:"decimal" enum:"point,comma" doc:"Decimal sign of the numbers in CSV, TSV and in texts of XLSX: 1,234.5 or 1.234,5. Default: by the values of the whole file."`
	OnError   string  `query:"on_error" enum:"abort,skip" default:"abort" doc:"How to handle invalid rows."`
	DryRun    string  `query:"dry_run" enum:"true,false" default:"false" doc:"Import the file, then roll back."`
}

func (q ImportQuery) options() (transfer.Options, error) {
	o := transfer.Options{
		Null:     q.Null,
		Encoding: q.Encoding,
		Header:   q.Header == "true",
		Skip:     q.OnError == "skip",
		DryRun:   q.DryRun == "true",
		Sheet:    q.Sheet,
		Decimal:  q.Decimal,

		HeaderLine: int64(q.HeaderAt),
	}

	if q.Delimiter != nil {
		if o.Delimiter = (*q.Delimiter)[0]; len(*q.Delimiter) != 1 || strings.ContainsAny(*q.Delimiter, "\"\r\n") {
			return o, fault.OnField(fault.Invalid, "delimiter", "not_allowed",
				"must be one ASCII character other than a quote or line break")
		}
	}

	return o, nil
}

func (s *Server) importTable(
	ctx context.Context, p *projectdb.Project, in *importTableInput,
) (transfer.Imported, error) {
	o, err := in.options()
	if err != nil {
		return transfer.Imported{}, err
	}

	file, name, format, err := s.receiveData(ctx, &in.Upload, in.Format)
	if err != nil {
		return transfer.Imported{}, err
	}
	defer file.Close()

	if err := o.SetFormat(format); err != nil {
		return transfer.Imported{}, err
	}

	if in.Name != "" {
		name = in.Name
	}

	return transfer.ImportTable(ctx, p, in.Schema, name, file, o)
}

var importRows = operation.Operation{
	ID: "importRows", Method: "POST", Path: "/tables/{tableUUID}/import", Summary: "Import rows into a table",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 413, 422, 429, 500},
	Grows: operation.Always, Body: dataFile,
	Notes: importNotes +
		" The header, or the members of JSON objects, name the columns; other columns get their defaults. Rows " +
		"are inserted as the project's owner, and so triggers run. With `mode=upsert`, the last of several rows " +
		"with the same key in the file wins.",
}

type importRowsInput struct {
	Table string `path:"tableUUID" maxLength:"200" doc:"Full name, ID or UUID of the table."`
	ImportQuery
	Mode       string `query:"mode" enum:"insert,upsert,ignore" default:"insert" doc:"How to handle a row that conflicts with an existing one: insert rejects it, upsert updates the existing row, ignore skips it."`
	OnConflict string `query:"on_conflict" maxLength:"2000" doc:"For upsert and ignore: comma-separated columns of a unique constraint, which identify a row. Default: the primary key."`
	operation.Upload
}

func (s *Server) importRows(ctx context.Context, p *projectdb.Project, in *importRowsInput) (transfer.Imported, error) {
	o, err := in.options()
	if err != nil {
		return transfer.Imported{}, err
	}

	if _, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table); err != nil { // check before the file is received
		return transfer.Imported{}, err
	}

	file, _, format, err := s.receiveData(ctx, &in.Upload, in.Format)
	if err != nil {
		return transfer.Imported{}, err
	}
	defer file.Close()

	if err := o.SetFormat(format); err != nil {
		return transfer.Imported{}, err
	}

	o.Mode = in.Mode

	if in.OnConflict != "" {
		o.OnConflict = strings.Split(in.OnConflict, ",")
	}

	return transfer.ImportRows(ctx, p, in.Table, file, o)
}
