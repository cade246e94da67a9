package statement

import (
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
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
		steps, err := split("query", query, true)
		var got []string
		for _, s := range steps {
			got = append(got, strings.TrimSpace(s.Text))
		}

		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%s: got %q, %v, want %q", query, got, err, want)
		}
	}
}

// TestSteps: each statement has its verdict and its line, also of a text that is no UTF-8.
func TestSteps(t *testing.T) {
	t.Parallel()

	steps, err := split("query", "-- é\xff\n\nbegin;\n/* x\n*/ alter table t\n owner to postgres;\n\n select 1; commit", true)
	if err != nil {
		t.Fatal(err)
	}

	var got []StepNote
	for i, s := range steps {
		got = append(got, s.notes(i)...)
	}

	want := []StepNote{
		{1, 3, "BEGIN and its COMMIT are left out: all statements are one transaction"},
		{2, 5, "owner postgres is left out: everything belongs to the project's owner"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	if last := steps[2]; last.Action != dialect.Run || last.Line != 8 || steps[3].Action != dialect.LeaveOut {
		t.Errorf("got %v on line %d, then %v", last.Action, last.Line, steps[3].Action)
	}
}

// TestPlaces: a report has the line and column of its position, or else the line of its statement.
func TestPlaces(t *testing.T) {
	t.Parallel()

	const text = "/* é */ select 1;  select\n  nope,\n x; -- a\n select 2"
	steps, err := split("query", text, true)
	if err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct{ step, position, line, column int }{
		{0, 9, 1, 9}, {1, 20, 1, 20}, {1, 29, 2, 3}, {1, 36, 3, 2}, {1, 0, 1, 0},
		{2, 0, 4, 0}, {2, 52, 4, 9}, {2, 99, 4, 0},
	} {
		r := steps[test.step].place(pg.Report{}, test.step, test.position)
		want := pg.Report{Statement: test.step + 1, Position: test.position, Line: test.line, Column: test.column}
		if r != want {
			t.Errorf("%d in statement %d: got %+v, want %+v", test.position, test.step, r, want)
		}
	}
}

// TestRefusedSteps: the failure of a text names its statement.
func TestRefusedSteps(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		text    string
		single  bool
		message string // "": none
		at      int
	}{
		{"select 1; rollback", true, "ROLLBACK is not possible here", 2},
		{"copy t from stdin", false, "COPY is not possible here", 1},
		{"begin; commit", false, "BEGIN is not possible here", 1},
		{"begin; commit", true, "", 0},
		{"select 1;\ncommit", true, "COMMIT has no BEGIN before it", 2},
		{"begin read only; commit", true, "BEGIN has options, which one transaction can't follow", 1},
		{"begin; set local a to b; commit; select 1", true, "the statement has an effect until COMMIT, but the file is " +
			"one transaction: put the statements after COMMIT into a file of their own", 2},
		{"prepare transaction 'a'", true, "PREPARE is not possible here", 1},
		{"drop extension a", true, dropMessage, 1},
		{"drop extension a", false, "", 0},
		{"drop extension if exists a", true, "", 0},
	} {
		_, err := split("query", test.text, test.single)
		if test.message == "" {
			if err != nil {
				t.Errorf("%s: got %v", test.text, err)
			}
			continue
		}

		report, _ := fault.Of(err).Extra["postgres"].(pg.Report)
		if report.Message != test.message || report.Statement != test.at {
			t.Errorf("%s: got %q at %d, want %q at %d", test.text, report.Message, report.Statement, test.message,
				test.at)
		}
	}
}
