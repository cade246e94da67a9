package query_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/rest/query"
)

func TestParsePrefer(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		values  []string
		want    query.Prefer
		applied string
	}{
		{nil, query.Prefer{}, ""},
		{[]string{"", " , "}, query.Prefer{}, ""},
		{[]string{"return=minimal"}, query.Prefer{Return: "minimal"}, "return=minimal"},
		{[]string{"return=representation,count=exact, resolution=merge-duplicates"},
			query.Prefer{Return: "representation", Count: "exact", Resolution: "merge-duplicates"},
			"resolution=merge-duplicates, return=representation, count=exact"},
		{[]string{"count=planned", "count=exact, return=headers-only", "return=minimal"},
			query.Prefer{Count: "planned", Return: "headers-only"}, "return=headers-only, count=planned"},
		{[]string{
			"max-affected=10, timezone=America/Los_Angeles, handling=lenient, tx=rollback, count=estimated, " +
				"missing=default, resolution=ignore-duplicates",
		},
			query.Prefer{MaxAffected: ptr(10), Timezone: "America/Los_Angeles", Handling: "lenient", Tx: "rollback",
				Count: "estimated", Missing: "default", Resolution: "ignore-duplicates"},
			"resolution=ignore-duplicates, missing=default, count=estimated, tx=rollback, handling=lenient, " +
				"timezone=America/Los_Angeles, max-affected=10"},
		{[]string{"max-affected=0, max-affected=5, missing=null, tx=commit, handling=strict"},
			query.Prefer{MaxAffected: ptr(0), Missing: "null", Tx: "commit", Handling: "strict"},
			"missing=null, tx=commit, handling=strict, max-affected=0"},
		{[]string{
			"Return=minimal, return=all, count=none, anything, timezone=, max-affected=x, max-affected=-1, " +
				"params=single-object",
		},
			query.Prefer{Invalid: []string{"Return=minimal", "return=all", "count=none", "anything", "timezone=",
				"max-affected=x", "max-affected=-1", "params=single-object"}}, ""},
	} {
		got := query.ParsePrefer(c.values)
		if err := got.StrictError(); err != nil {
			t.Errorf("ParsePrefer(%q): %v", c.values, err)
		}

		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("ParsePrefer(%q) (-want +got):\n%s", c.values, diff)
		}
		if got := got.Applied(); got != c.applied {
			t.Errorf("ParsePrefer(%q).Applied() = %q, want %q", c.values, got, c.applied)
		}
	}
}

func TestParsePreferStrict(t *testing.T) {
	t.Parallel()

	p := query.ParsePrefer([]string{"anything, count=exact", "handling=strict, foo"})
	want := &query.Error{Status: 400, Code: "PGRST122", Message: "Invalid preferences given with handling=strict",
		Details: "Invalid preferences: anything, foo"}
	if diff := cmp.Diff(error(want), p.StrictError()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p.Count != "exact" {
		t.Errorf("count = %q, want exact beside the failure", p.Count)
	}

	if err := query.ParsePrefer([]string{"handling=lenient, handling=strict, foo"}).StrictError(); err != nil {
		t.Errorf("lenient first: %v", err)
	}
}

func TestParseRange(t *testing.T) {
	t.Parallel()

	for header, want := range map[string]struct {
		offset int64
		limit  *int64
		ok     bool
	}{
		"0-9":                    {0, ptr(10), true},
		"5-5":                    {5, ptr(1), true},
		"5-":                     {5, nil, true},
		"5-4":                    {5, ptr(0), true},
		"9-0":                    {9, ptr(-8), true},
		"0-9223372036854775807":  {0, nil, true},
		"3-99999999999999999999": {3, nil, true},
		"99999999999999999999-":  {math.MaxInt64, nil, true},
		"":                       {},
		"5":                      {},
		"-5":                     {},
		"items=0-9":              {},
		"0-9,20-29":              {},
		"0--1":                   {},
		" 0-9":                   {},
		"+0-9":                   {},
	} {
		offset, limit, ok := query.ParseRange(header)
		if offset != want.offset || !cmp.Equal(limit, want.limit) || ok != want.ok {
			t.Errorf("ParseRange(%q) = %d, %s, %t, want %+v", header, offset, cmp.Diff(want.limit, limit), ok, want)
		}
	}
}

// FuzzPrefer checks that Applied repeats all that ParsePrefer understood.
func FuzzPrefer(f *testing.F) {
	for _, header := range []string{
		"return=minimal, count=exact", "handling=strict, max-affected=10,timezone=Europe/Berlin",
		"tx=rollback,,\t resolution=merge-duplicates, missing=default",
		"max-affected=-1, timezone=, return", "handling=lenient, handling=strict, x=y",
	} {
		f.Add(header, "0-9")
	}

	f.Fuzz(func(t *testing.T, header, rows string) {
		p := query.ParsePrefer([]string{header})
		err := p.StrictError()
		if (err != nil) != (p.Handling == "strict" && len(p.Invalid) > 0) {
			t.Errorf("%q: %v of %+v", header, err, p)
		}

		for _, token := range p.Invalid {
			if !strings.Contains(header, token) {
				t.Errorf("%q does not have %q", header, token)
			}
		}

		again := query.ParsePrefer([]string{p.Applied()})

		p.Invalid = nil
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("%q, said as %q\n%s", header, p.Applied(), diff)
		}

		if offset, _, _ := query.ParseRange(rows); offset < 0 {
			t.Errorf("%q begins at %d", rows, offset)
		}
	})
}
