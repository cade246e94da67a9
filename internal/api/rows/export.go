package rows

import (
	"context"
	"mime"
	"net/http"
	"strings"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/transfer"
)

var exportTable = operation.Operation{
	ID: "exportTable", Method: "GET", Path: "/tables/{tableUUID}/export", Summary: "Export a table",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 500},
	Notes: "Exports all rows from one snapshot, ordered by primary key, with the rights of the project's owner. An " +
		"interrupted download is incomplete. In CSV and TSV, null is an empty field and an empty text a quoted " +
		"one. With `spreadsheet=true`, text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return is " +
		"prefixed with an apostrophe, so that spreadsheets do not evaluate it as a formula.",
}

type exportTableInput struct {
	Table       string `path:"tableUUID" maxLength:"200" doc:"Full name, ID or UUID of the table."`
	Format      string `query:"format" enum:"csv,tsv,jsonl" default:"csv"`
	Columns     string `query:"columns" maxLength:"10000" doc:"Comma-separated names of columns. Default: all."`
	Spreadsheet string `query:"spreadsheet" enum:"true,false" default:"false"`
}

func (s *Server) exportTable(
	ctx context.Context, p *projectdb.Project, in *exportTableInput,
) (operation.Stream, error) {
	var columns []string
	if in.Columns != "" {
		columns = strings.Split(in.Columns, ",")
	}

	e, err := transfer.OpenExport(ctx, p, in.Table, in.Format, columns, in.Spreadsheet == "true")
	if err != nil {
		return operation.Stream{}, err
	}

	return operation.Stream{Errors: exportTable.Errors, Headers: func(h http.Header) {
		h.Set("Content-Type", exportTypes[e.Format])
		h.Set("Content-Disposition",
			mime.FormatMediaType("attachment", map[string]string{"filename": e.Table.Name + "." + e.Format}))
		h.Set("Cache-Control", "no-store")
	}, Write: e.Write, Close: e.Close}, nil
}

var exportTypes = map[string]string{
	transfer.CSV: "text/csv; charset=utf-8",
	transfer.TSV: "text/tab-separated-values; charset=utf-8", transfer.JSONL: "application/x-ndjson",
}
