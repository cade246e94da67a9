package platform

import (
	"slices"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/fault"
)

// TestSigningKeys checks that the active key comes first and that retired ones are listed for their
// retention.
func TestSigningKeys(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	if _, err := s.SigningKeyAge(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("without a key: got %v, want NotFound", err)
	}

	for _, id := range []string{"first", "second", "third"} {
		if err := s.RotateSigningKey(t.Context(), id, []byte(id)); err != nil {
			t.Fatal(err)
		}
	}

	exec(t, s, `update platform.signing_keys set retired_at = now() - interval '2 hours' where id = 'first'`)
	for keep, want := range map[time.Duration][]string{
		time.Hour: {"third", "second"}, 3 * time.Hour: {"third", "second", "first"},
	} {
		keys, err := s.SigningKeys(t.Context(), keep)
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for _, k := range keys {
			got = append(got, k.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("kept for %s: got %v, want %v", keep, got, want)
		}
	}
}

// TestSlowStatements checks that statements are unavailable without their extension, and that those
// of another database are not listed.
func TestSlowStatements(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	got, err := s.GetSlowStatements(t.Context(), "absent")
	if err != nil || got.Available || got.Reason == "" {
		t.Errorf("without the extension: got %+v, %v, want a reason", got, err)
	}

	if err := EnableStatementStats(t.Context(), s.q); err != nil {
		t.Fatal(err)
	}

	got, err = s.GetSlowStatements(t.Context(), "absent")
	if err != nil || !got.Available || got.Reason != "" || len(got.Statements) != 0 {
		t.Errorf("with the extension: got %+v, %v, want no statement", got, err)
	}
}
