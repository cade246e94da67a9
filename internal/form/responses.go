package form

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Response is a response with that version's fields.
type Response struct {
	UUID        uuid.UUID  `json:"uuid" format:"uuid"`
	FormUUID    uuid.UUID  `json:"formUuid" format:"uuid"`
	Version     int        `json:"version" doc:"Version of the fields that were answered."`
	State       string     `json:"state" enum:"partial,complete"`
	Answers     []Answer   `json:"answers" doc:"In the order of the fields; unanswered fields are omitted."`
	CreatedAt   time.Time  `json:"createdAt"`
	UpdatedAt   time.Time  `json:"updatedAt"`
	SubmittedAt *time.Time `json:"submittedAt" nullable:"true" doc:"Time of completion."`
	ExpiresAt   *time.Time `json:"expiresAt" nullable:"true" doc:"When a partial response expires."`
}

// Answer is an answer to a field.
type Answer struct {
	FieldUUID uuid.UUID      `json:"fieldUuid" format:"uuid"`
	Label     string         `json:"label" doc:"As of the response."`
	Type      string         `json:"type" doc:"As of the response."`
	Value     jsontext.Value `json:"value" doc:"Text, number, boolean, list of options, or the location of a file."`
}

// Filter selects responses. Empty members do not filter.
type Filter struct {
	State  string // partial or complete
	From   string // earliest creation: RFC 3339, or a day in UTC
	To     string // creation before this time, or until the end of this day
	Search string // contained in an answer, case-insensitive
}

// storedResponse is a row of forms.responses.
type storedResponse struct {
	UUID        uuid.UUID
	FormUUID    uuid.UUID
	Version     int
	State       string
	Answers     json.RawMessage
	CreatedAt   time.Time
	UpdatedAt   time.Time
	SubmittedAt *time.Time
	ExpiresAt   *time.Time
}

const responseColumns = `uuid, form_uuid, version, state, answers, created_at, updated_at, submitted_at, expires_at`

// filterCondition is a Filter's SQL condition.
const filterCondition = `
	form_uuid = @form and (@state = '' or state = @state) and created_at >= @from and created_at < @to
	and (@search = '' or exists (
		select from jsonb_each(answers) a where strpos(lower(a.value #>> '{}'), lower(@search)) > 0))`

func (f Filter) args(form uuid.UUID) (pgx.StrictNamedArgs, error) {
	from, err := parseDay("from", f.From, time.Unix(0, 0).UTC(), 0)
	if err != nil {
		return nil, err
	}

	to, err := parseDay("to", f.To, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	if err != nil {
		return nil, err
	}

	return pgx.StrictNamedArgs{"form": form, "state": f.State, "from": from, "to": to, "search": f.Search}, nil
}

// parseDay parses an RFC 3339 time, or a date, to which it adds after days. Empty text means
// absent.
func parseDay(name, text string, absent time.Time, after int) (time.Time, error) {
	if text == "" {
		return absent, nil
	}

	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t.AddDate(0, 0, after), nil
	}

	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fault.OnField(fault.Invalid, name, "invalid_format",
			"must be a date such as 2026-11-21 or a time in RFC 3339")
	}

	return t, nil
}

// ListResponses returns a page of the filtered responses to a form and their total number. Sort
// keys are createdAt, updatedAt and submittedAt. It fails with NotFound if the form does not exist,
// and with Invalid on an invalid date.
func ListResponses(
	ctx context.Context, p *projectdb.Project, form uuid.UUID, filter Filter, page pg.Page,
) ([]Response, int64, error) {
	var responses []Response
	var total int64

	args, err := filter.args(form)
	if err != nil {
		return nil, 0, err
	}

	err = readTx(ctx, p, func(tx pgx.Tx) (err error) {
		if _, err = getForm(ctx, tx, p, form); err != nil {
			return err
		}

		var rows []storedResponse
		rows, total, err = pg.List[storedResponse](ctx, tx, pg.Listing{
			Columns: responseColumns,
			From:    `forms.responses where` + filterCondition,
			Sorts: map[string]string{
				"createdAt": "created_at", "updatedAt": "updated_at", "submittedAt": "submitted_at",
			},
			Tie: "uuid",
		}, page, args)
		if err != nil {
			return err
		}

		responses, err = withFields(ctx, tx, form, rows)
		return err
	})

	return responses, total, err
}

// GetResponse returns a response to a form. It fails with NotFound if the form has no such
// response.
func GetResponse(ctx context.Context, p *projectdb.Project, form, id uuid.UUID) (Response, error) {
	var r Response
	err := readTx(ctx, p, func(tx pgx.Tx) error {
		row, err := pg.One[storedResponse](ctx, tx,
			`select `+responseColumns+` from forms.responses where uuid = @id and form_uuid = @form`,
			pgx.StrictNamedArgs{"id": id, "form": form})
		if err != nil {
			return err
		}

		all, err := withFields(ctx, tx, form, []storedResponse{row})
		if err != nil {
			return err
		}

		r = all[0]
		return nil
	})

	return r, err
}

// DeleteResponse deletes a response to a form and calls remove with its files in the same
// transaction. Deleting a complete response makes room for another. It fails with NotFound if the
// form has no such response.
func DeleteResponse(
	ctx context.Context, p *projectdb.Project, form, id uuid.UUID, remove RemoveFiles,
) (Response, error) {
	var r Response
	err := p.InTx(ctx, func(tx pgx.Tx) error {
		if err := (submission{form: form}).lockForm(ctx, tx); err != nil { // lock order: form, response
			return err
		}

		row, err := pg.One[storedResponse](ctx, tx,
			`delete from forms.responses where uuid = @id and form_uuid = @form returning `+responseColumns,
			pgx.StrictNamedArgs{"id": id, "form": form})
		if err != nil {
			return err
		}

		if row.State == "complete" {
			if _, err := pg.Exec(ctx, tx,
				`update forms.forms set total_responses = total_responses - 1 where uuid = @form`,
				pgx.StrictNamedArgs{"form": form}); err != nil {
				return err
			}
		}

		all, err := withFields(ctx, tx, form, []storedResponse{row})
		if err != nil {
			return err
		}

		r = all[0]
		return remove(ctx, tx, r.files())
	})

	return r, err
}

// files returns the UUIDs of the response's files.
func (r Response) files() []uuid.UUID {
	var all []uuid.UUID
	for _, a := range r.Answers {
		var file FileAnswer
		if a.Type == "file" && json.Unmarshal(a.Value, &file) == nil {
			all = append(all, file.FileUUID)
		}
	}

	return all
}

// storedVersion holds a version's fields.
type storedVersion struct {
	Version int
	Fields  []storedField
}

// withFields combines stored responses with their versions' fields.
func withFields(ctx context.Context, q pg.Querier, form uuid.UUID, rows []storedResponse) ([]Response, error) {
	var versions []int
	for _, s := range rows {
		versions = append(versions, s.Version)
	}

	definitions, err := pg.All[storedVersion](ctx, q, `
		select version, fields from forms.definitions where form_uuid = @form and version = any(@versions::integer[])`,
		pgx.StrictNamedArgs{"form": form, "versions": versions})
	if err != nil {
		return nil, err
	}

	fields := map[int][]storedField{}
	for _, d := range definitions {
		fields[d.Version] = d.Fields
	}

	responses := make([]Response, len(rows))
	for i, s := range rows {
		r := Response{UUID: s.UUID, FormUUID: s.FormUUID, Version: s.Version, State: s.State, Answers: []Answer{},
			CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, SubmittedAt: s.SubmittedAt, ExpiresAt: s.ExpiresAt}

		var values map[string]json.RawMessage
		if err := json.Unmarshal(s.Answers, &values); err != nil {
			return nil, err
		}

		for _, f := range fields[s.Version] {
			if v, ok := values[f.UUID.String()]; ok {
				r.Answers = append(r.Answers, Answer{f.UUID, f.Label, f.Type, jsontext.Value(v)})
			}
		}

		responses[i] = r
	}

	return responses, nil
}

// Text formats the answer as a spreadsheet cell: options separated by semicolons, a file's name.
func (a Answer) Text() string {
	var options []string
	var text string
	var file FileAnswer
	switch a.Value.Kind() {
	case '[':
		if json.Unmarshal(a.Value, &options) == nil {
			return strings.Join(options, "; ")
		}
	case '"':
		if json.Unmarshal(a.Value, &text) == nil {
			return text
		}
	case '{':
		if json.Unmarshal(a.Value, &file) == nil {
			return file.FullFileName
		}
	}

	return string(a.Value)
}
