package form

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// withoutTriggers runs f in a transaction in which triggers and foreign keys are disabled, as in a
// restore.
func withoutTriggers(t *testing.T, p *projectdb.Project, f func(tx pgx.Tx) error) {
	t.Helper()

	if err := pg.InTx(t.Context(), p.Trusted(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "set local session_replication_role = replica"); err != nil {
			return err
		}
		return f(tx)
	}); err != nil {
		t.Fatal(err)
	}
}

// newAnsweredForm creates an open form with a field and a response.
func newAnsweredForm(t *testing.T, p *projectdb.Project) uuid.UUID {
	t.Helper()

	f := newForm(t, p)
	field := newField(t, p, f.UUID, FieldInput{Label: "name", Type: "text"})
	if _, err := UpdateForm(t.Context(), p, projectdbtest.UUID(t), f.UUID,
		FormUpdate{State: optOf("open")}); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateResponse(t.Context(), p, FieldCache{}, f.UUID, projectdbtest.UUID(t),
		Answers{field.UUID.String(): jsontext.Value(`"Ann"`)}, Attachments{}); err != nil {
		t.Fatal(err)
	}

	return f.UUID
}

// rowsOf returns the number of fields, definitions and responses of a form.
func rowsOf(t *testing.T, p *projectdb.Project, form uuid.UUID) []int64 {
	t.Helper()

	counts, err := pg.Values[int64](t.Context(), p.Trusted(), `
		select count(*) from forms.fields where form_uuid = @form
		union all select count(*) from forms.definitions where form_uuid = @form
		union all select count(*) from forms.responses where form_uuid = @form`, pgx.NamedArgs{"form": form})
	if err != nil {
		t.Fatal(err)
	}

	return counts
}

// TestRenew gives one of two forms a new UUID. Its fields, definitions and responses follow.
func TestRenew(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	kept, renewed := newAnsweredForm(t, p), newAnsweredForm(t, p)
	withoutTriggers(t, p, func(tx pgx.Tx) error { return renew(t.Context(), tx, nil) })
	withoutTriggers(t, p, func(tx pgx.Tx) error { return renew(t.Context(), tx, []uuid.UUID{renewed}) })

	forms, err := listUUIDs(t.Context(), p.Trusted())
	if err != nil || len(forms) != 2 || !slices.Contains(forms, kept) || slices.Contains(forms, renewed) {
		t.Fatalf("got forms %v, %v, want %s and a new one", forms, err, kept)
	}

	for _, form := range forms {
		if got, want := rowsOf(t, p, form), []int64{1, 1, 1}; !slices.Equal(got, want) {
			t.Errorf("got fields, definitions, responses %v, want %v", got, want)
		}
	}
}

// TestRepair deletes the rows of a missing form and counts responses.
func TestRepair(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	kept, missing := newAnsweredForm(t, p), newAnsweredForm(t, p)
	withoutTriggers(t, p, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `update forms.forms set total_responses = 70`); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `delete from forms.forms where uuid = $1`, missing); err != nil {
			return err
		}

		return repair(t.Context(), tx)
	})

	if got, want := rowsOf(t, p, kept), []int64{1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("got fields, definitions, responses %v, want %v", got, want)
	}
	if got, want := rowsOf(t, p, missing), []int64{0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got fields, definitions, responses %v of a missing form, want %v", got, want)
	}

	total, err := pg.Value[int64](t.Context(), p.Trusted(), `select total_responses from forms.forms`)
	if err != nil || total != 1 {
		t.Errorf("got %d responses, %v, want 1", total, err)
	}
}
