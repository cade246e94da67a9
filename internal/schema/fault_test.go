package schema_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/schema"
)

// TestReportOfText checks PostgreSQL's report on each kind of text that a user writes: its place
// counts from the text's own beginning.
func TestReportOfText(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql("create table public.notes (id int, owner uuid)", "insert into public.notes values (0)",
		"create function public.touch() returns trigger language plpgsql as 'begin return new; end'",
		"create function public.half(int) returns int immutable language plpgsql as 'begin return 1 / $1; end'")

	policy := func(command, using, check string) error {
		_, err := schema.CreatePolicy(t.Context(), p.owner, p.uuid, "notes", schema.NewPolicy{Name: "p",
			Command: command, Roles: []string{"authenticated"}, Permissive: true, Using: using, WithCheck: check})
		return err
	}
	function := func(language, definition string) error {
		_, err := schema.CreateFunction(t.Context(), p.owner, schema.NewFunction{Schema: "public", Name: "f",
			Definition: definition, Language: language, ReturnType: "integer"})
		return err
	}
	index := func(n schema.NewIndex) error {
		_, _, err := schema.CreateIndex(t.Context(), p.owner, p.uuid, "notes", n)
		return err
	}
	constraint := func(expression string) error {
		_, err := schema.CreateConstraint(t.Context(), p.owner, p.uuid, "notes", schema.NewConstraint{Type: "check",
			Expression: expression})
		return err
	}
	trigger := func(when string) error {
		_, err := schema.CreateTrigger(t.Context(), p.owner, p.uuid, "notes", schema.NewTrigger{Name: "t",
			Timing: "before", Events: []string{"update"}, Function: "touch", When: when})
		return err
	}

	for _, test := range []struct {
		name                   string
		err                    error
		field, state           string
		position, line, column int
	}{
		{"using", policy("select", " id = 1\n and ownr is null", ""), "using", "42703", 14, 2, 6},
		{"with check", policy("insert", "", "id = 'é' || x"), "with_check", "42703", 13, 1, 13},
		{"end", policy("select", "id =", ""), "using", "42601", 5, 1, 5},
		{"body", function("sql", "select 'it''s',\n missing"), "definition", "42703", 18, 2, 2},
		{"escaped body", function("sql", "select 'a''b\\',\n missing"), "definition", "42703", 18, 2, 2},
		{"plpgsql", function("plpgsql", "begin\n retrun 1;\nend"), "definition", "42601", 8, 2, 2},
		{"index", index(schema.NewIndex{Keys: []schema.IndexKey{{Expression: "id + nope"}}, Method: "btree"}),
			"keys.0.expression", "42703", 6, 1, 6},
		{"partial index", index(schema.NewIndex{Columns: []string{"id"}, Where: "id = now()", Method: "btree"}),
			"where", "42883", 4, 1, 4},
		{"check", constraint("nope > 1"), "expression", "42703", 1, 1, 1},
		{"when", trigger("new.id <> old.nope"), "when", "42703", 11, 1, 11},
	} {
		f := fault.Of(test.err)
		if test.err == nil || len(f.Fields) != 1 || f.Kind != fault.Unprocessable {
			t.Errorf("%s: got %v", test.name, test.err)
			continue
		}

		r, _ := f.Extra["postgres"].(pg.Report)
		got := pg.Report{SQLState: r.SQLState, Position: r.Position, Line: r.Line, Column: r.Column}
		want := pg.Report{SQLState: test.state, Position: test.position, Line: test.line, Column: test.column}
		if f.Fields[0].Name != test.field || got != want || r.Message == "" {
			t.Errorf("%s: got %s, %+v, want %s, %+v", test.name, f.Fields[0].Name, r, test.field, want)
		}
	}

	// PostgreSQL's report on a row can have its values.
	f := fault.Of(index(schema.NewIndex{Keys: []schema.IndexKey{{Expression: "half(id)"}}, Method: "btree"}))
	if len(f.Fields) != 1 || f.Fields[0].Name != "keys" || f.Extra["postgres"] != nil {
		t.Errorf("failing index: got %v, %v, want keys without a report", f, f.Extra)
	}
}

// TestNoReportOfStatements checks that a statement which Socle wrote reports nothing.
func TestNoReportOfStatements(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql("create table public.notes (id int)", "create policy p on public.notes using (true)")

	_, err := schema.CreatePolicy(t.Context(), p.owner, p.uuid, "notes", schema.NewPolicy{Name: "p", Command: "select",
		Roles: []string{"public"}, Permissive: true, Using: "true"})
	if f := fault.Of(err); f.Kind != fault.Conflict || f.Extra != nil {
		t.Errorf("got %v with %v, want a conflict without a report", err, f.Extra)
	}
}
