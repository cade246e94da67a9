package api

import (
	"context"
	"strings"

	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/schema"
	"socle/internal/tenant"
	"socle/internal/transfer"
)

func (s *Server) registerTransfers() {
	within(s, exportTable, s.exportTable, nil)
	within(s, importTable, s.importTable, nil)
	within(s, importRows, s.importRows, nil)
}

const importNotes = "The file is the body itself, or the part `file` of a multipart body: CSV, TSV, lines of JSON objects, or a workbook (XLSX, its first sheet or the one of the name `sheet`), up to 2 GiB. " +
	"It is stored in one transaction: all of it, or with `on_error=skip` all but the rows that can't be, of which the first 1000 are reported."

var importTable = Operation{
	ID: "importTable", Method: "POST", Path: "/tables/import", Summary: "Make a table of a file",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 409, 413, 422, 429, 500}, Grows: true,
	Notes: importNotes +
		" The columns' types are the narrowest that all values have. The table is closed, as every new one is.",
}

type importTableInput struct {
	Name   string `query:"name" maxLength:"63" doc:"Of the new table; if it is not given, the file's own name without its ending."`
	Schema string `query:"schema" maxLength:"63" default:"public"`
	ImportQuery
	DataUpload
}

// ImportQuery has the options for parsing a data file.
type ImportQuery struct {
	Format    string  `query:"format" enum:"csv,tsv,jsonl,xlsx" doc:"If it is not given, the file's ending or media type tells."`
	Delimiter *string `query:"delimiter" maxLength:"1" minLength:"1" doc:"Between values; a comma, or for TSV a tab, if it is not given."`
	Null      string  `query:"null" maxLength:"20" doc:"Text without quotes that means null; empty if it is not given."`
	Encoding  string  `query:"encoding" enum:"utf-8,utf-16,windows-1252,iso-8859-1" default:"utf-8" doc:"A byte order mark of UTF-16 tells by itself."`
	Sheet     string  `query:"sheet" maxLength:"31" doc:"Of a workbook; the first, if it is not given."`
	Header    string  `query:"header" enum:"true,false" default:"true" doc:"Whether the first row names the columns."`
	OnError   string  `query:"on_error" enum:"abort,skip" default:"abort" doc:"What to do about a row that can't be stored."`
	DryRun    string  `query:"dry_run" enum:"true,false" default:"false" doc:"Do all of it, and undo it."`
}

func (q ImportQuery) options() (transfer.Options, error) {
	o := transfer.Options{
		Null:     q.Null,
		Encoding: q.Encoding,
		Header:   q.Header == "true",
		Skip:     q.OnError == "skip",
		DryRun:   q.DryRun == "true",
		Sheet:    q.Sheet,
	}

	if q.Delimiter != nil {
		if o.Delimiter = (*q.Delimiter)[0]; len(*q.Delimiter) != 1 || strings.ContainsAny(*q.Delimiter, "\"\r\n") {
			return o, fault.OnField(fault.Invalid, "delimiter", "not_allowed",
				"must be one character of ASCII, and no quote or line break")
		}
	}

	return o, nil
}

func (s *Server) importTable(ctx context.Context, p *tenant.Project, in *importTableInput) (transfer.Imported, error) {
	o, err := in.options()
	if err != nil {
		return transfer.Imported{}, err
	}

	file, name, format, err := in.receive(ctx, s, in.Format)
	if err != nil {
		return transfer.Imported{}, err
	}
	defer file.Close()

	o.Format = format

	if in.Name != "" {
		name = in.Name
	}

	return transfer.ImportTable(ctx, p, in.Schema, name, file, o)
}

var importRows = Operation{
	ID: "importRows", Method: "POST", Path: "/tables/{tableUUID}/import", Summary: "Import rows into a table",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 404, 409, 413, 422, 429, 500}, Grows: true,
	Notes: importNotes +
		" The header, or the members of JSON, are names of columns; the others get their defaults. The rows are stored as the project's owner, by whom triggers run too. " +
		"Of rows of the file that are alike, `mode=upsert` leaves the last one.",
}

type importRowsInput struct {
	tableInput
	ImportQuery
	Mode       string `query:"mode" enum:"insert,upsert,ignore" default:"insert" doc:"What becomes of a row that the table has one like: it is rejected, replaces the values of that one, or is passed over."`
	OnConflict string `query:"on_conflict" maxLength:"2000" doc:"For upsert and ignore: the columns, separated by commas, by which rows are told apart, together unique; the primary key, if it is not given."`
	DataUpload
}

func (s *Server) importRows(ctx context.Context, p *tenant.Project, in *importRowsInput) (transfer.Imported, error) {
	o, err := in.options()
	if err != nil {
		return transfer.Imported{}, err
	}

	if _, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table); err != nil { // check before the file is received
		return transfer.Imported{}, err
	}

	file, _, format, err := in.receive(ctx, s, in.Format)
	if err != nil {
		return transfer.Imported{}, err
	}
	defer file.Close()

	o.Format, o.Mode = format, in.Mode

	if in.OnConflict != "" {
		o.OnConflict = strings.Split(in.OnConflict, ",")
	}

	return transfer.ImportRows(ctx, p, in.Table, file, o)
}
