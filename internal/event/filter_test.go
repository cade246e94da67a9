package event

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/fault"
)

func TestParseFilters(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]filter{
		"":        nil,
		"id=eq.7": {{column: "id", operator: "eq", values: []string{"7"}}},
		"id=in.(1,2),b=neq.x": {
			{column: "id", operator: "in", values: []string{"1", "2"}},
			{column: "b", operator: "neq", values: []string{"x"}},
		},
		`a=eq."x,y"`:               {{column: "a", operator: "eq", values: []string{"x,y"}}},
		`a=in.("x,y","say \"z""")`: {{column: "a", operator: "in", values: []string{"x,y", `say "z""`}}},
		"a=not.is.null":            {{column: "a", operator: "is", negated: true, values: []string{"null"}}},
		"a=eq.":                    {{column: "a", operator: "eq", values: []string{""}}},
		"a=like.%b.c%":             {{column: "a", operator: "like", values: []string{"%b.c%"}}},
		"a=eq.b=c":                 {{column: "a", operator: "eq", values: []string{"b=c"}}},
	} {
		got, err := parseFilters(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(filter{})); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}

	for _, text := range []string{"id", "id=7", "=eq.7", "id=xx.7", "id=in.1", "id=is.7", ","} {
		if _, err := parseFilters(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want Invalid", text, err)
		}
	}
}

func TestFilterHolds(t *testing.T) {
	t.Parallel()

	for text, cases := range map[string]map[string]bool{
		"a=eq.x":      {"x": true, "y": false},
		"a=neq.x":     {"x": false, "y": true},
		"a=in.(x,y)":  {"x": true, "z": false},
		"a=not.eq.x":  {"x": false, "y": true},
		"a=not.neq.x": {"x": true, "y": false},
	} {
		filters, err := parseFilters(text)
		if err != nil {
			t.Fatal(err)
		}
		for value, want := range cases {
			if got := filters[0].holds(value, true); got != want {
				t.Errorf("%s on %s: got %v, want %v", text, value, got, want)
			}
		}
		if filters[0].holds("", false) {
			t.Errorf("%s on null: holds", text)
		}
	}
}
