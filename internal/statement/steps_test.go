package statement

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	t.Parallel()

	for query, want := range map[string][]string{
		"select 1":             {"select 1"},
		"select 1; select 2;":  {"select 1", "select 2"},
		"; ;select 1;; -- x\n": {"select 1"},
		"select ';', e'\\';', U&'\\;', \";\", 'a''b;'": {"select ';', e'\\';', U&'\\;', \";\", 'a''b;'"},
		"select e'a'\n'\\';' ; select 2":               {"select e'a'\n'\\';'", "select 2"},
		"select 'a' -- ;\n'b;' ; select 2":             {"select 'a' -- ;\n'b;'", "select 2"},
		"select $$;$$, $a$ $$; $a$, a$b$c; select":     {"select $$;$$, $a$ $$; $a$, a$b$c", "select"},
		"select $1; select $2":                         {"select $1", "select $2"},
		"/* /* ; */ ; */ select 1; select 2":           {"/* /* ; */ ; */ select 1", "select 2"},
		"create rule r as on insert to t do (a; b); c": {"create rule r as on insert to t do (a; b)", "c"},
		"create or replace function f() returns int begin atomic select case when a then 1 end; end; c": {
			"create or replace function f() returns int begin atomic select case when a then 1 end; end", "c",
		},
		"create procedure p() begin atomic; b; end; c": {
			"create procedure p() begin atomic; b; end", "c",
		},
		"create table begin (id int); end": nil,
		"select 1) ; select 2": {"select 1)",
			"select 2"},
		"select 'unended; select 2": {
			"select 'unended; select 2",
		},
	} {
		statements, err := split(query)
		var got []string
		for _, s := range statements {
			got = append(got, strings.TrimSpace(s.Text))
		}

		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%s: got %q, %v, want %q", query, got, err, want)
		}
	}
}
