package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/pg"
)

// TestStoredHeaders reads valid and invalid values of the column, which a restored backup can have.
func TestStoredHeaders(t *testing.T) {
	t.Parallel()

	q := newBucket(t).project.Trusted()
	for stored, want := range map[string]Headers{
		`{"Content-Language": "de", "Expires": "0"}`:                               {"Content-Language": "de", "Expires": "0"},
		`{"Set-Cookie": "a=b", "Content-Security-Policy": "", "Expires": "never"}`: {"Expires": "never"},
		`{"Content-Encoding": 5, "content-language": "de"}`:                        {},
		`["Content-Encoding"]`:                                                     {},
		`"gzip"`:                                                                   {},
		`null`:                                                                     {},
	} {
		got, err := pg.Value[Headers](t.Context(), q, `select $1::jsonb`, stored)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", stored, err, diff)
		}
	}

	if got, err := pg.Value[Headers](t.Context(), q, `select null::jsonb`); err != nil || got != nil {
		t.Errorf("null: got %v, %v", got, err)
	}
}
