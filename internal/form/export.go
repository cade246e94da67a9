package form

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const exportBatch = 500 // responses per query

// Export writes the responses to a form as a spreadsheet.
type Export struct {
	project    *projectdb.Project
	form       uuid.UUID
	args       pgx.StrictNamedArgs
	columns    []column
	firstBatch []Response
}

// column is a field with the latest label.
type column struct {
	field uuid.UUID
	label string
}

// NewExport prepares exporting the filtered responses to a form. It fails as [ListResponses] does.
func NewExport(ctx context.Context, p *projectdb.Project, form uuid.UUID, filter Filter) (*Export, error) {
	args, err := filter.args(form)
	if err != nil {
		return nil, err
	}

	e := &Export{project: p, form: form, args: args}

	f, err := GetFullForm(ctx, p, form)
	if err != nil {
		return nil, err
	}

	columnUUIDs := map[uuid.UUID]bool{}
	for _, field := range f.Fields {
		e.columns, columnUUIDs[field.UUID] = append(e.columns, column{field.UUID, field.Label}), true
	}

	// Deleted fields follow the current ones.
	definitions, err := pg.All[storedVersion](ctx, p.Trusted(), `
		select version, fields from forms.definitions where form_uuid = @form order by version desc`,
		pgx.StrictNamedArgs{"form": form})
	if err != nil {
		return nil, err
	}

	for _, d := range definitions {
		for _, field := range d.Fields {
			if !columnUUIDs[field.UUID] {
				e.columns, columnUUIDs[field.UUID] = append(e.columns, column{field.UUID, field.Label}), true
			}
		}
	}

	e.firstBatch, err = e.next(ctx, time.Unix(0, 0).UTC(), uuid.Nil)
	return e, err
}

// next returns the next batch of responses after the given one.
func (e *Export) next(ctx context.Context, after time.Time, id uuid.UUID) ([]Response, error) {
	e.args["after"], e.args["id"], e.args["batch"] = after, id, exportBatch
	rows, err := pg.All[storedResponse](ctx, e.project.Trusted(), `
		select `+responseColumns+` from forms.responses
		where (created_at, uuid) > (@after, @id) and`+filterCondition+`
		order by created_at, uuid limit @batch`, e.args)
	if err != nil {
		return nil, err
	}

	return withFields(ctx, e.project.Trusted(), e.form, rows)
}

// WriteCSV writes the responses as CSV (RFC 4180), oldest first: a header with labels, then one
// record each. It holds no connection while it writes.
func (e *Export) WriteCSV(ctx context.Context, w io.Writer) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	head := []string{"uuid", "state", "version", "createdAt", "submittedAt"}
	for _, c := range e.columns {
		head = append(head, escapeFormula(c.label))
	}

	if err := out.Write(head); err != nil {
		return err
	}

	for batch := e.firstBatch; len(batch) > 0; {
		for _, r := range batch {
			if err := out.Write(e.row(r)); err != nil {
				return err
			}
		}

		if out.Flush(); out.Error() != nil {
			return out.Error()
		}

		last := batch[len(batch)-1]
		var err error
		if batch, err = e.next(ctx, last.CreatedAt, last.UUID); err != nil {
			return err
		}
	}

	out.Flush()
	return out.Error()
}

func (e *Export) row(r Response) []string {
	cells := []string{
		r.UUID.String(), r.State, strconv.Itoa(r.Version), formatTime(&r.CreatedAt), formatTime(r.SubmittedAt),
	}
	byField := make(map[uuid.UUID]string, len(r.Answers))
	for _, a := range r.Answers {
		text := a.Text()
		if a.Value.Kind() != '0' { // negative numbers are not formulas
			text = escapeFormula(text)
		}

		byField[a.FieldUUID] = text
	}

	for _, c := range e.columns {
		cells = append(cells, byField[c.field])
	}

	return cells
}

func formatTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// escapeFormula protects against formula injection: it prefixes text that a spreadsheet would
// evaluate with '.
func escapeFormula(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}
