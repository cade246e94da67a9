package api

import (
	"bufio"
	"context"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/httpx"
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
	tableInput
	Format      string `query:"format" enum:"csv,tsv,jsonl" default:"csv"`
	Columns     string `query:"columns" maxLength:"10000" doc:"Comma-separated names of columns. Default: all."`
	Spreadsheet string `query:"spreadsheet" enum:"true,false" default:"false"`
}

func (s *Server) exportTable(ctx context.Context, p *projectdb.Project, in *exportTableInput) (export, error) {
	var columns []string
	if in.Columns != "" {
		columns = strings.Split(in.Columns, ",")
	}

	e, err := transfer.OpenExport(ctx, p, in.Table, in.Format, columns, in.Spreadsheet == "true")
	return export{e}, err
}

// export responds with the rows of a table.
type export struct{ *transfer.Export }

var exportTypes = map[string]string{
	transfer.CSV: "text/csv; charset=utf-8",
	transfer.TSV: "text/tab-separated-values; charset=utf-8", transfer.JSONL: "application/x-ndjson",
}

const (
	exportBufferSize   = 64 << 10         // bytes
	clientWriteTimeout = 60 * time.Second // for the client to accept one piece of a response
)

// ServeHTTP writes the table. A failure before the first byte gets an error response. A later one
// aborts the connection, so that a truncated table does not look complete.
func (e export) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer e.Close()

	out := &streamWriter{ResponseWriter: w, control: http.NewResponseController(w), setHeaders: func() {
		h := w.Header()
		h.Set("Content-Type", exportTypes[e.Format])
		h.Set("Content-Disposition",
			mime.FormatMediaType("attachment", map[string]string{"filename": e.Table.Name + "." + e.Format}))
		h.Set("Cache-Control", "no-store")
	}}

	buffer := bufio.NewWriterSize(out, exportBufferSize)
	err := e.Write(r.Context(), buffer)
	if err == nil {
		err = buffer.Flush()
	}

	switch {
	case err == nil && !out.started: // JSON Lines of an empty table: no bytes were written
		out.start()
		w.WriteHeader(http.StatusOK)
	case err != nil && !out.started:
		operation.WriteFailure(w, r, err, exportTable.Errors)
	case err != nil:
		httpx.From(r.Context()).Err = err
		panic(http.ErrAbortHandler)
	}
}

// streamWriter is a response that renews its write deadline with each write, and sets its headers
// before the first one.
type streamWriter struct {
	http.ResponseWriter
	control    *http.ResponseController
	setHeaders func()
	started    bool
}

func (l *streamWriter) start() {
	l.started = true
	l.setHeaders()
}

func (l *streamWriter) Write(b []byte) (int, error) {
	if !l.started {
		l.start()
	}

	if err := l.control.SetWriteDeadline(time.Now().Add(clientWriteTimeout)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}

	return l.ResponseWriter.Write(b)
}
