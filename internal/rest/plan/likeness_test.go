package plan

import (
	"strings"
	"testing"
)

func TestLikeliest(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		names, wrong string
		least        float64
		want         string
	}{
		{"films roles actors", "film", minLikeness, "films"},
		{"films roles actors", "FILMZ", minLikeness, "films"},
		{"films roles actors", "zzzzzzzz", minLikeness, ""},
		{"films roles actors", "role", minPublicLikeness, "roles"},
		{"Films", "films", minLikeness, "Films"},
		{"äpfel birnen", "äpfeln", minLikeness, "äpfel"},
		{"other", "tether", minPublicLikeness, "other"},
		// half the characters match, but no two consecutive ones
		{"order", "redro", minPublicLikeness, ""},
		{"ab ac", "ad", minPublicLikeness, "ab"},                 // first tie, by two characters
		{"project projects", "projectx", minLikeness, "project"}, // one edit each
		{"a_b", "ab_", 0.3, "a_b"},                               // an underscore is in no n-gram
		{"", "x", minPublicLikeness, ""},
		{"x", strings.Repeat("x", maxComparedBytes+1), 0, ""},
	} {
		if got := mostSimilar(strings.Fields(test.names), test.wrong, test.least); got != test.want {
			t.Errorf("%q of %s by %v: got %q, want %q", test.wrong, test.names, test.least, got, test.want)
		}
	}

	params := []string{"(name, param, val)", "(attr, id)", "()"}
	for wrong, want := range map[string]string{
		"(nam, pqaram, vall)": "(name, param, val)", "(param, val)": "(name, param, val)", "(attrs, id)": "(attr, id)",
		"(id)": "(attr, id)", "(noclosealternative)": "", "(A, B, C)": "(attr, id)",
	} {
		if got := mostSimilar(params, wrong, minPublicLikeness); got != want {
			t.Errorf("%s: got %q, want %q", wrong, got, want)
		}
	}

	if got := mostSimilar([]string{"(data)"}, "(A, B, C)", minPublicLikeness); got != "" {
		t.Errorf("got %q", got)
	}
	if got := mostSimilar([]string{
		"()", "(a)", "(a, b)", "(a, b, c)",
	}, "(a, b, wrong_arg)", minPublicLikeness); got != "(a, b, c)" {
		t.Errorf("got %q", got)
	}
}
