package form

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestSweep checks that expired partial responses are deleted, and nothing else.
func TestSweep(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	f := newForm(t, p)
	field := newField(t, p, f.UUID, FieldInput{Label: "name", Type: "text"})
	if _, err := UpdateForm(t.Context(), p, projectdbtest.UUID(t), f.UUID,
		FormUpdate{State: optOf("open")}); err != nil {
		t.Fatal(err)
	}

	answers := func() Answers { return Answers{field.UUID.String(): jsontext.Value(`"Ann"`)} }
	var late uuid.UUID
	for range 2 {
		r, _, err := StartResponse(t.Context(), p, f.UUID, projectdbtest.UUID(t), answers())
		if err != nil {
			t.Fatal(err)
		}

		late = r.UUID
	}

	if _, err := CreateResponse(t.Context(), p, FieldCache{}, f.UUID, projectdbtest.UUID(t), answers(),
		Attachments{}); err != nil {
		t.Fatal(err)
	}

	if n, err := Sweep(t.Context(), p); n != 0 || err != nil {
		t.Errorf("before expiry: got %d, %v, want 0", n, err)
	}

	if _, err := pg.Exec(t.Context(), p.Trusted(), `update forms.responses set expires_at = now() where uuid = @late`,
		pgx.NamedArgs{"late": late}); err != nil {
		t.Fatal(err)
	}

	if n, err := Sweep(t.Context(), p); n != 1 || err != nil {
		t.Errorf("got %d, %v, want 1", n, err)
	}
	if n, err := pg.Value[int](t.Context(), p.Trusted(), `select count(*) from forms.responses`); n != 2 || err != nil {
		t.Errorf("%d responses remain, %v, want 2", n, err)
	}
}

func TestFormatNumber(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"0": "0", "-0": "-0", "000": "0", "007": "7", "-007.50": "-7.50", "0.5": "0.5", "00.5": "0.5",
		"100": "100", "10.0": "10.0",
	} {
		if got := formatNumber(text); got != want {
			t.Errorf("formatNumber(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestEscapeFormula(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"": "", "a": "a", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\ta": "'\ta", "\ra": "'\ra",
		"\n=1": "'\n=1", " =1": " =1", "a=1": "a=1", "é": "é",
	} {
		if got := escapeFormula(text); got != want {
			t.Errorf("escapeFormula(%q) = %q, want %q", text, got, want)
		}
	}
}
