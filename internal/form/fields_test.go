package form

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// ignoreGenerated ignores unpredictable values.
var ignoreGenerated = cmp.Options{cmpopts.IgnoreTypes(time.Time{}), cmpopts.IgnoreFields(Field{}, "UUID")}

func newForm(t *testing.T, p *projectdb.Project) Form {
	t.Helper()

	f, err := CreateForm(t.Context(), p, projectdbtest.UUID(t), projectdbtest.UUID(t), NewForm{Name: "contact"})
	if err != nil {
		t.Fatal(err)
	}

	return f
}

func newField(t *testing.T, p *projectdb.Project, form uuid.UUID, in FieldInput) Field {
	t.Helper()

	created, err := CreateFields(t.Context(), p, form, []FieldInput{in})
	if err != nil {
		t.Fatal(err)
	}

	return created[0]
}

func TestCreateForm(t *testing.T) {
	t.Parallel()

	p, user, id := projectdbtest.New(t), projectdbtest.UUID(t), projectdbtest.UUID(t)

	created, err := CreateForm(t.Context(), p, user, id, NewForm{Name: "Kontakt", Description: "Schreib uns"})
	if err != nil {
		t.Fatal(err)
	}

	want := Form{
		UUID:        id,
		ProjectUUID: p.UUID,
		Name:        "Kontakt",
		Description: new("Schreib uns"),
		State:       "draft",
		Version:     1,

		NotifyEmails: []string{},
		Unconfirmed:  []string{},
		EmbedOrigins: []string{},

		CreatedBy: user,
		UpdatedBy: user,
	}
	if diff := cmp.Diff(created, want, ignoreGenerated); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}

	got, err := GetForm(t.Context(), p, id)
	if diff := cmp.Diff(got, created); diff != "" || err != nil {
		t.Errorf("got -, want + (%v)\n%s", err, diff)
	}

	if _, err := CreateForm(t.Context(), p, user, id, NewForm{Name: "again"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("duplicate UUID: got %v, want Conflict", err)
	}
	if f, err := CreateForm(t.Context(), p, user, projectdbtest.UUID(t), NewForm{Name: "x"}); err != nil ||
		f.Description != nil {
		t.Errorf("no description: got %v (%v), want null", f.Description, err)
	}

	_, err = CreateForm(t.Context(), p, user, projectdbtest.UUID(t), NewForm{Name: "\n", Description: "\x00"})
	if got, want := codes(fault.Of(err).Fields), []string{
		"name invalid_format", "description invalid_format",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	if _, err := GetForm(t.Context(), p, projectdbtest.UUID(t)); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown form: got %v, want NotFound", err)
	}
}

func TestCreateFields(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	form := newForm(t, p)

	created, err := CreateFields(t.Context(), p, form.UUID, []FieldInput{
		{Label: "name", Type: "text", IsRequired: optOf(true), Pattern: optOf("[a-z]+"),
			MinLength: optOf(int64(1)), MaxLength: optOf(int64(5)),
			DefaultValue: optOf("abc"), Description: optOf("who?")},
		{Label: "colour", Type: "select", Options: optOf("red, green")},
		{Label: "stars", Type: "rating", MinValue: optOf(int64(-1 << 63)), MaxValue: optOf(int64(1<<63 - 1))},
		{Label: "day", Type: "date", DateFormat: optOf("DD.MM.YYYY"),
			StartDate: optOf("01.02.2026"), EndDate: optOf("2026-12-31")},
	})
	if err != nil {
		t.Fatal(err)
	}

	want := []Field{
		{FormUUID: form.UUID, Definition: Definition{Label: "name", Type: "text",
			Description: new("who?"), IsRequired: true,
			DefaultValue: new("abc"), Pattern: new("[a-z]+"), MinLength: new(int64(1)), MaxLength: new(int64(5))}},
		{FormUUID: form.UUID, Definition: Definition{Label: "colour", Type: "select", Options: new(`["red","green"]`)}},
		{FormUUID: form.UUID,
			Definition: Definition{Label: "stars", Type: "rating",
				MinValue: new(int64(-1 << 63)), MaxValue: new(int64(1<<63 - 1))}},
		{FormUUID: form.UUID, Definition: Definition{Label: "day", Type: "date", DateFormat: new("DD.MM.YYYY"),
			StartDate: new("2026-02-01"), EndDate: new("2026-12-31")}},
	}
	if diff := cmp.Diff(created, want, ignoreGenerated); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}

	for _, f := range created {
		got, err := GetField(t.Context(), p, form.UUID, f.UUID)
		if diff := cmp.Diff(got, f); diff != "" || err != nil {
			t.Errorf("got -, want + (%v)\n%s", err, diff)
		}
	}
}

func TestCreateFieldsRefused(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	form := newForm(t, p)
	good, bad := FieldInput{Label: "a", Type: "text"}, FieldInput{Label: "", Type: "select"}

	_, err := CreateFields(t.Context(), p, form.UUID, []FieldInput{good, bad})
	if got, want := codes(fault.Of(err).Fields), []string{
		"fields.1.label required", "fields.1.options required",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	if got, want := fields(t, p, form), []string{}; !slices.Equal(got, want) {
		t.Errorf("after a refused request: got %q, want %q", got, want)
	}

	_, err = CreateFields(t.Context(), p, form.UUID, []FieldInput{bad})
	if got, want := codes(fault.Of(err).Fields), []string{
		"fields.0.label required", "fields.0.options required",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	if _, err := CreateFields(t.Context(), p, projectdbtest.UUID(t), []FieldInput{bad}); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("unknown form: got %v, want NotFound", err)
	}

	for _, n := range []int{0, maxBatch + 1} {
		if _, err := CreateFields(t.Context(), p, form.UUID, slices.Repeat([]FieldInput{good}, n)); !fault.Is(err,
			fault.Unprocessable) {
			t.Errorf("%d fields: got %v, want Unprocessable", n, err)
		}
	}

	for range maxFields / maxBatch {
		if _, err := CreateFields(t.Context(), p, form.UUID, slices.Repeat([]FieldInput{good}, maxBatch)); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := CreateFields(t.Context(), p, form.UUID, []FieldInput{good}); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("more than the maximum of fields: got %v, want Unprocessable", err)
	}
}

// TestCreateFieldsConcurrently adds fields concurrently: those of one request stay together and in
// order.
func TestCreateFieldsConcurrently(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	form := newForm(t, p)
	runWhileLocked(t, p, `select from forms.forms for update`,
		func() {
			if _, err := CreateFields(t.Context(), p, form.UUID,
				[]FieldInput{{Label: "a", Type: "text"}, {Label: "b", Type: "text"}}); err != nil {
				t.Error(err)
			}
		},
		func() {
			if _, err := CreateFields(t.Context(), p, form.UUID,
				[]FieldInput{{Label: "c", Type: "text"}, {Label: "d", Type: "text"}}); err != nil {
				t.Error(err)
			}
		})

	if got := strings.Join(fields(t, p, form), ""); got != "abcd" && got != "cdab" {
		t.Errorf("got %s, want abcd or cdab", got)
	}
}

// runWhileLocked starts functions that need a locked row and releases the lock when all of them
// wait for it.
func runWhileLocked(t *testing.T, p *projectdb.Project, lock string, functions ...func()) {
	t.Helper()

	tx, err := p.Trusted().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())

	if _, err := tx.Exec(t.Context(), lock); err != nil {
		t.Fatal(err)
	}

	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(f)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	for waiting := 0; waiting < len(functions); {
		waiting, err = pg.Value[int](ctx, p.Trusted(), `
			select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
		if err != nil {
			t.Fatal(err)
		}
	}

	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	group.Wait()
}

// fields returns the labels of a form's fields in order.
func fields(t *testing.T, p *projectdb.Project, form Form) []string {
	t.Helper()

	labels := []string{}

	rows, err := p.Trusted().Query(t.Context(),
		`select label from forms.fields where form_uuid = $1 order by position`, form.UUID)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var label string
		if err := rows.Scan(&label); err != nil {
			t.Fatal(err)
		}

		labels = append(labels, label)
	}

	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}

	return labels
}

func TestUpdateField(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	form := newForm(t, p)
	f := newField(t, p, form.UUID, FieldInput{
		Label:        "colour",
		Type:         "select",
		Options:      optOf("red,green"),
		DefaultValue: optOf("red"),
		Description:  optOf("which?"),
	})

	got, err := UpdateField(t.Context(), p, form.UUID, f.UUID, FieldInput{
		Label:   "colours",
		Type:    "multiselect",
		Options: optOf("red,blue"),
	})

	want := f
	want.Definition = Definition{
		Label:        "colours",
		Type:         "multiselect",
		Options:      new(`["red","blue"]`),
		DefaultValue: new(`["red"]`),
		Description:  new("which?"),
	}
	if diff := cmp.Diff(got, want, ignoreGenerated); diff != "" || err != nil {
		t.Errorf("got -, want + (%v)\n%s", err, diff)
	}
	if !got.CreatedAt.Equal(f.CreatedAt) || !got.UpdatedAt.After(f.UpdatedAt) {
		t.Errorf("got created %v, updated %v; want created %v, updated after %v",
			got.CreatedAt, got.UpdatedAt, f.CreatedAt, f.UpdatedAt)
	}

	_, err = UpdateField(t.Context(), p, form.UUID, f.UUID, FieldInput{
		Label:    "",
		Type:     "multiselect",
		Options:  optOf("green"),
		MinValue: optOf(int64(1)),
	})
	if got, want := codes(fault.Of(err).Fields), []string{
		"min_value not_applicable", "label required", "default_value invalid_value",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	if after, err := GetField(t.Context(), p, form.UUID, f.UUID); err != nil || !cmp.Equal(after, got) {
		t.Errorf("after a refused request (%v): got -, want +\n%s", err, cmp.Diff(after, got))
	}

	bad := FieldInput{}
	other := newForm(t, p)
	for name, ids := range map[string][2]uuid.UUID{
		"another form's field": {other.UUID, f.UUID},
		"unknown form":         {projectdbtest.UUID(t), f.UUID}, "unknown field": {form.UUID, projectdbtest.UUID(t)},
	} {
		if _, err := UpdateField(t.Context(), p, ids[0], ids[1], bad); !fault.Is(err, fault.NotFound) {
			t.Errorf("update %s: got %v, want NotFound", name, err)
		}
		if _, err := GetField(t.Context(), p, ids[0], ids[1]); !fault.Is(err, fault.NotFound) {
			t.Errorf("get %s: got %v, want NotFound", name, err)
		}
	}
}

// TestUpdateFieldConcurrently concurrently changes two limits that must not cross: one change
// fails.
func TestUpdateFieldConcurrently(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	form := newForm(t, p)
	f := newField(t, p, form.UUID, FieldInput{
		Label:    "a",
		Type:     "number",
		MinValue: optOf(int64(0)),
		MaxValue: optOf(int64(10)),
	})

	var up, down error
	runWhileLocked(t, p, `select from forms.fields for update`,
		func() {
			_, up = UpdateField(t.Context(), p, form.UUID, f.UUID, FieldInput{
				Label:    "a",
				Type:     "number",
				MinValue: optOf(int64(7)),
			})
		},
		func() {
			_, down = UpdateField(t.Context(), p, form.UUID, f.UUID, FieldInput{
				Label:    "a",
				Type:     "number",
				MaxValue: optOf(int64(3)),
			})
		})

	refused := fault.Is(up, fault.Unprocessable) || fault.Is(down, fault.Unprocessable)
	if (up == nil) == (down == nil) || !refused {
		t.Errorf("got %v and %v, want one success and one Unprocessable", up, down)
	}
}
