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
		{"films roles actors", "film", alike, "films"},
		{"films roles actors", "FILMZ", alike, "films"},
		{"films roles actors", "zzzzzzzz", alike, ""},
		{"films roles actors", "role", faintly, "roles"},
		{"Films", "films", alike, "Films"},
		{"äpfel birnen", "äpfeln", alike, "äpfel"},
		{"other", "tether", faintly, "other"},
		// half the characters match, but no two consecutive ones
		{"order", "redro", faintly, ""},
		{"ab ac", "ad", faintly, "ab"},                     // first of two ties, by two characters
		{"project projects", "projectx", alike, "project"}, // one edit each
		{"a_b", "ab_", 0.3, "a_b"},                         // an underscore is in no n-gram
		{"", "x", faintly, ""},
		{"x", strings.Repeat("x", longest+1), 0, ""},
	} {
		if got := likeliest(strings.Fields(test.names), test.wrong, test.least); got != test.want {
			t.Errorf("%q of %s by %v: got %q, want %q", test.wrong, test.names, test.least, got, test.want)
		}
	}

	params := []string{"(name, param, val)", "(attr, id)", "()"}
	for wrong, want := range map[string]string{
		"(nam, pqaram, vall)": "(name, param, val)", "(param, val)": "(name, param, val)", "(attrs, id)": "(attr, id)",
		"(id)": "(attr, id)", "(noclosealternative)": "", "(A, B, C)": "(attr, id)",
	} {
		if got := likeliest(params, wrong, faintly); got != want {
			t.Errorf("%s: got %q, want %q", wrong, got, want)
		}
	}

	if got := likeliest([]string{"(data)"}, "(A, B, C)", faintly); got != "" {
		t.Errorf("got %q", got)
	}
	if got := likeliest([]string{
		"()", "(a)", "(a, b)", "(a, b, c)",
	}, "(a, b, wrong_arg)", faintly); got != "(a, b, c)" {
		t.Errorf("got %q", got)
	}
}
