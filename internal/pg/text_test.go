package pg_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestStorableJSON compares the rule with PostgreSQL's jsonb.
func TestStorableJSON(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })

	for text, want := range map[string]bool{
		`{}`: true, `{"a":"\\u0000"}`: true, `{"a":"\\\\u0000"}`: true, `{"a":"\u0001\n\"é😀"}`: true,
		`"\ud83d\ude00"`: true, `{"a":1e308,"e":[-2.5E-300,true,null]}`: true,
		`"1e999999"`: true, `"\\\ud83d\ude00"`: true,

		`{"a":"\u0000"}`: false, `{"\u0000":1}`: false, `"\\\u0000"`: false, `"\ud83d"`: false, `"\ude00"`: false,
		`"\ud83dx"`: false, `"\ud83d\n"`: false, `"\ud83d\ud83d"`: false, `[1e999999]`: false, "\"\xff\"": false,
		`{"a":{"b":-1E999999}}`: false,
	} {
		if !json.Valid([]byte(text)) {
			t.Errorf("%s is no JSON", text)
		}
		if got := pg.StorableJSON([]byte(text)); got != want {
			t.Errorf("StorableJSON(%s) = %v, want %v", text, got, want)
		}

		_, err := conn.Exec(t.Context(), "select $1::text::jsonb", text)
		if (err == nil) != want {
			t.Errorf("PostgreSQL stores %s: got %v, want %v", text, err, want)
		}
	}
}

func TestStorable(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{"": true, "é😀\x01": true, "a\x00": false, "\xff": false} {
		if got := pg.Storable(text); got != want {
			t.Errorf("Storable(%q) = %v, want %v", text, got, want)
		}
		for _, values := range []map[string][]string{{"a": {"", text}}, {"a": nil, text: nil}} {
			if got := pg.StorableValues(values); got != want {
				t.Errorf("StorableValues(%q) = %v, want %v", values, got, want)
			}
		}
	}
}
