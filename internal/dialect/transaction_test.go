package dialect

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/sqllex"
)

func TestPairs(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]struct {
		pairs  string
		reason string
	}{
		"a; b":                                                          {"", ""},
		"begin; a; commit":                                              {"0 2", ""},
		"BEGIN TRANSACTION; a; END WORK;":                               {"0 2", ""},
		"a; start transaction; b; commit; c":                            {"1 3", ""},
		"begin; a; commit; begin; b; end":                               {"0 2 3 5", ""},
		"begin; set local a = b; c; commit":                             {"0 3", ""},
		"begin; a":                                                      {"", "0: BEGIN has no COMMIT after it"},
		"a; commit":                                                     {"", "1: COMMIT has no BEGIN before it"},
		"begin; begin; commit":                                          {"", "1: BEGIN is in a transaction already"},
		"begin read only; a; commit":                                    {"", "0: BEGIN has options"},
		"begin; a; commit and chain; commit":                            {"", "2: COMMIT has options"},
		"begin; set local a = b; commit; c":                             {"", "1: the statement has an effect until COMMIT"},
		"begin; set constraints all deferred; commit; c":                {"", "1: the statement has an effect until COMMIT"},
		"begin; create temp table t () on commit drop; commit; c":       {"", "1: the statement has an effect until COMMIT"},
		"begin; select set_config('a', 'b', true); commit; c":           {"", "1: the statement has an effect until COMMIT"},
		"begin; set a = b; commit; c":                                   {"0 2", ""},
		"create function f() returns int begin atomic select 1; end; a": {"", ""},
	} {
		pairs, err := Pairs(sqllex.Split(text))
		got := ""
		if err != nil {
			got = string(rune('0'+err.Statement)) + ": " + err.Reason
		}

		var list []string
		for _, i := range pairs {
			list = append(list, string(rune('0'+i)))
		}

		if joined := strings.Join(list, " "); joined != want.pairs || !strings.HasPrefix(got, want.reason) ||
			(got == "") != (want.reason == "") {
			t.Errorf("%s: got %q, %q, want %q", text, joined, got, want)
		}
	}
}
