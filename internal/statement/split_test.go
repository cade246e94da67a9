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
		pieces, err := split(query)
		var got []string
		for _, p := range pieces {
			got = append(got, strings.TrimSpace(p.text))
		}

		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%s: got %q, %v, want %q", query, got, err, want)
		}
	}
}

// FuzzSplit checks that the pieces are disjoint parts of the query, in order.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		"select 1; é", "e'\\", "$a$", "/*", "create function f() begin atomic case", "'\n'", "\xff;",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, query string) {
		pieces, _ := split(query)
		rest := query
		for _, p := range pieces {
			i := strings.Index(rest, p.text)
			if i < 0 {
				t.Fatalf("%q: %q is not part of the rest", query, p.text)
			}

			rest = rest[i+len(p.text):]
		}
	})
}

func TestComplete(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		"select 1": false, "select 1;": true, "select ';": false, "select $$;": false, "select $$;$$;": true,
		"select 1; -- done": true, "select 1; select": false, "": true,
		"create function f() returns int begin atomic select 1;": false,
	} {
		if got := Complete(text); got != want {
			t.Errorf("Complete(%q): got %v, want %v", text, got, want)
		}
	}
}
