package transfer

import "testing"

func TestGuess(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		want   string
		values []string
	}{
		{"date", []string{"2026-01-01", "2026-12-31"}},
		{"timestamp", []string{"2026-01-01", "2026-01-01 10:00:00"}},
		{"timestamp", []string{"2026-01-01T10:00", "2026-01-01"}},
		{"text", []string{"2026-01-01", "2026-01-01 10:00:00Z"}},
		{"timestamptz", []string{"2026-01-01 10:00:00+02", "2026-01-01 10:00:00Z"}},
		{"text", []string{"2026-01-01", "1"}},
		{"text", []string{"2026-02-30", "2026-01-01 10:00:00"}},
		{"numeric", []string{"1", "1.5"}},
		{"bigint", []string{"1", "3000000000"}},
		{"text", []string{"1", "01"}},
		{"text", nil},
	} {
		g := guess{possible: anyType}
		for _, v := range test.values {
			g.narrow(value{text: []byte(v)})
		}

		if got := g.name(); got != test.want {
			t.Errorf("%q: got %s, want %s", test.values, got, test.want)
		}
	}
}

func TestCounter(t *testing.T) {
	t.Parallel()

	c := counter{}
	for _, text := range []string{"5", "x", "-3", "9", "100"} {
		c.add(value{text: []byte(text)})
	}
	c.add(value{null: true, text: []byte("7")})

	c.store(0, 2)
	c.store(2, 4) // the last rows are rejected

	if !c.stored || c.lowest != -3 || c.highest != 9 {
		t.Errorf("got %d to %d (%t), want -3 to 9", c.lowest, c.highest, c.stored)
	}
}
