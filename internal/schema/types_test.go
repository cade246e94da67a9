package schema_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/schema"
)

// TestTypes checks that common spellings of types are accepted, that their representation is short,
// and that the representation is accepted for the same type.
func TestTypes(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema app`, `create type public.mood as enum ('sad', 'ok')`, `create type app.mood as enum ('up')`,
		`create domain public.email as text check (value like '%@%')`, `create type public.pair as (a int, b text)`,
		`create type public."Odd ""Type""" as enum ('x')`, `create domain public.uuid as text`,
		`create domain app."double precision" as text`)

	p.table("t", column("id"))

	for i, test := range []struct{ sent, want string }{
		{"integer", "integer"}, {" INT ", "integer"}, {"int4", "integer"}, {"pg_catalog.int4", "integer"},
		{"smallint", "smallint"}, {"bigint", "bigint"}, {"int8", "bigint"}, {"text", "text"}, {"TEXT", "text"},
		{"boolean", "boolean"}, {"bool", "boolean"}, {"real", "real"}, {"double  precision", "double precision"},
		{"float", "double precision"}, {"float(24)", "real"}, {"float(25)", "double precision"}, {"numeric", "numeric"},
		{"decimal(10, 2)", "numeric(10,2)"}, {"dec(5)", "numeric(5,0)"}, {"numeric(5,-2)", "numeric(5,-2)"},
		{"varchar", "varchar"}, {"varchar(80)", "varchar(80)"}, {"character varying(80)", "varchar(80)"},
		{"char varying", "varchar"}, {"varchar(80)[]", "varchar(80)[]"}, {"char", "char(1)"},
		{"character(5)", "char(5)"}, {"bpchar", "bpchar"}, {"bpchar(7)", "char(7)"}, {`"char"`, `"char"`},
		{"bit", "bit(1)"}, {"bit(3)", "bit(3)"}, {"bit varying(9)", "bit varying(9)"}, {"varbit", "bit varying"},
		{"timestamp", "timestamp"}, {"timestamptz", "timestamptz"}, {"timestamptz(3)", "timestamptz(3)"},
		{"timestamp (3) with time zone", "timestamptz(3)"}, {"timestamp without time zone", "timestamp"},
		{"timestamp(0)[]", "timestamp(0)[]"}, {"timestamp with time zone[]", "timestamptz[]"}, {"time", "time"},
		{"timetz", "timetz"}, {"time with time zone", "timetz"}, {"time(3) without time zone", "time(3)"},
		{"date", "date"}, {"interval", "interval"}, {"interval(3)", "interval(3)"},
		{"interval year to month", "interval year to month"},
		{"interval day to second(3)", "interval day to second(3)"}, {"interval hour", "interval hour"},
		{"interval(2)[]", "interval(2)[]"}, {"text[]", "text[]"}, {"text[3]", "text[]"}, {"integer[][]", "integer[]"},
		{"uuid", "uuid"}, {"jsonb", "jsonb"}, {"json", "json"}, {"bytea", "bytea"}, {"inet", "inet"},
		{"int4range", "int4range"}, {"xml", "xml"}, {"point", "point"}, {"money", "money"}, {"tsvector", "tsvector"},
		{"mood", "mood"}, {"public.mood", "mood"}, {"MOOD[]", "mood[]"}, {"app.mood", "app.mood"},
		{"app.mood[]", "app.mood[]"}, {"email", "email"}, {"pair", "pair"}, {`"Odd ""Type"""`, `"Odd ""Type"""`},
		{"public.uuid", "public.uuid"}, {`app."double precision"`, `app."double precision"`},
	} {
		name := "c" + strings.Repeat("_", i/26) + string(rune('a'+i%26))
		c, err := p.add("t", schema.NewColumn{Name: name, Type: test.sent})
		if err != nil {
			t.Errorf("type %s: %v", test.sent, err)
			continue
		}

		if c.Type != test.want {
			t.Errorf("type %s: got representation %s, want %s", test.sent, c.Type, test.want)
		}

		again, err := p.add("t", schema.NewColumn{Name: name + "2", Type: c.Type})
		if err != nil || again.Type != c.Type {
			t.Errorf("representation %s of a type: got %s (%v) for it, want the same", c.Type, again.Type, err)
		}
	}
}

func TestTypesRefused(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema closed`, `create type closed.mood as enum ('x')`)
	p.table("canary", column("id"))
	before := p.snapshot()

	for _, test := range []struct{ sent, code string }{
		{"", "required"}, {"  ", "required"}, {"nope", "invalid_type"}, {"nope.nope", "invalid_type"},
		{"public.integer", "invalid_type"}, {"a.b.c", "invalid_type"}, {"varchar(0)", "invalid_type"},
		{"varchar(99999999)", "invalid_type"}, {"varchar()", "invalid_type"}, {"varchar(80", "invalid_type"},
		{"varchar(1,2)", "invalid_type"}, {"varchar(99999999999999)", "invalid_type"},
		{"numeric(1001)", "invalid_type"}, {"numeric(0)", "invalid_type"}, {"numeric(5,2000)", "invalid_type"},
		{"numeric(a)", "invalid_type"}, {"text(5)", "invalid_type"}, {"float(0)", "invalid_type"},
		{"float(54)", "invalid_type"}, {"timestamp(7)", "invalid_type"}, {"time(-1)", "invalid_type"},
		{"interval(9)", "invalid_type"}, {"interval day(3)", "invalid_type"},
		{"timestamptz with time zone", "invalid_type"}, {"double", "invalid_type"},
		{"double precision(3)", "invalid_type"}, {"serial[]", "invalid_type"}, {"serial(4)", "invalid_type"},
		{"integer[][][]", "invalid_type"}, {"integer[][][][][][]", "invalid_type"}, {"integer[", "invalid_type"},
		{"integer]", "invalid_type"}, {"integer[a]", "invalid_type"}, {"[]", "invalid_type"},
		{"setof integer", "invalid_type"}, {"table(a int)", "invalid_type"}, {"void", "invalid_type"},
		{"trigger", "invalid_type"}, {"record", "invalid_type"}, {"record[]", "invalid_type"},
		{"anyelement", "invalid_type"}, {"anyarray", "invalid_type"}, {"cstring", "invalid_type"},
		{"cstring[]", "invalid_type"}, {"unknown", "invalid_type"}, {"internal", "invalid_type"},
		{"event_trigger", "invalid_type"}, {"pg_class", "invalid_type"}, {"pg_catalog.pg_class", "invalid_type"},
		{"pg_class[]", "invalid_type"}, {"pg_node_tree", "invalid_type"},
		{"information_schema.sql_identifier", "invalid_type"}, {"auth.users", "invalid_type"},
		{"auth.users[]", "invalid_type"}, {"pg_toast.x", "invalid_type"}, {"integer not null", "invalid_type"},
		{"integer default 1", "invalid_type"}, {"integer, add column x integer", "invalid_type"},
		{"integer; drop table canary", "invalid_type"}, {"integer -- x", "invalid_type"},
		{"integer /* x */", "invalid_type"}, {"integer collate \"C\"", "invalid_type"},
		{"integer check (true)", "invalid_type"}, {"integer references canary", "invalid_type"},
		{"integer generated always as (1) stored", "invalid_type"}, {"integer) ; --", "invalid_type"},
		{"canary.id%type", "invalid_type"}, {"text'", "invalid_type"}, {`te"xt`, "invalid_type"},
		{`""`, "invalid_type"}, {`"`, "invalid_type"}, {"$$int$$", "invalid_type"}, {"int\x00", "invalid_type"},
		{"int\xff", "invalid_type"}, {"ïnt", "invalid_type"}, {"(select 1)", "invalid_type"},
		{strings.Repeat("a", 64), "invalid_type"}, {strings.Repeat("x", 10_000), "invalid_type"},
		{`"` + strings.Repeat("é", 40) + `"`, "invalid_type"},
	} {
		_, err := p.add("canary", schema.NewColumn{Name: "x", Type: test.sent})
		wantFault(t, "type "+test.sent, err, fault.Unprocessable, "columns.0.type", test.code)
	}

	p.run(p.platform, `revoke all on schema public from public`, `alter schema closed owner to current_user`)
	_, err := p.add("canary", schema.NewColumn{Name: "x", Type: "closed.mood"})
	wantFault(t, "type of a schema without rights", err, fault.Unprocessable, "columns.0.type", "invalid_type")

	if after := p.snapshot(); after != before {
		t.Errorf("rejected types changed the catalog: got\n%s\nwant\n%s", after, before)
	}
}

// TestSerial checks that the serial types create identity columns.
// TestNearestTypeOfProject: an unknown type names the nearest one, also the project's own.
func TestNearestTypeOfProject(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema app`, `create type app.mood as enum ('up')`, `create type public.status as enum ('x')`)
	p.table("t", column("id"))

	for text, want := range map[string]string{
		"varchr":   "columns and functions: varchr; did you mean varchar?",
		"statsu":   "columns and functions: statsu; did you mean status?",
		"app.mod":  "columns and functions: app.mod; did you mean app.mood?",
		"nothing":  "columns and functions: nothing",
		"pg_class": "columns and functions: pg_class",
	} {
		_, err := p.add("t", schema.NewColumn{Name: "c", Type: text})
		if got := fault.Of(err).Detail; !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestSerial(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("t", schema.NewColumn{
		Name:    "id",
		Type:    "serial",
		Primary: true,
	}, schema.NewColumn{Name: "big", Type: "BIGSERIAL"},
		schema.NewColumn{Name: "small", Type: "serial2"}, schema.NewColumn{Name: "note", Type: "text"})

	p.sql(`insert into public.t (note) values ('a'), ('b')`)

	if got := p.value(`select string_agg(id || ' ' || big || ' ' || small, ', ' order by id) from public.t`); got !=
		"1 1 1, 2 2 2" {
		t.Errorf("values of identity columns: got %s", got)
	}

	want := []string{"integer", "bigint", "smallint"}
	for i, c := range p.columns("t")[:3] {
		if c.Type != want[i] || !c.NotNull || c.DefaultValue != "" {
			t.Errorf("identity column: got %+v, want type %s, not null, no default", c, want[i])
		}
	}

	if got := p.value(`select string_agg(attidentity, '' order by attnum) from pg_attribute where attrelid = 'public.t'::regclass and attnum between 1 and 3`); got != "ddd" {
		t.Errorf("identity kinds: got %s, want ddd", got)
	}
	if c, err := p.add("t", schema.NewColumn{Name: "later", Type: "smallserial"}); err != nil || !c.NotNull {
		t.Errorf("identity column on a table with rows: got %+v, %v", c, err)
	}

	_, err := p.add("t", schema.NewColumn{Name: "x", Type: "serial", DefaultValue: "5"})
	wantFault(t, "serial with a default", err, fault.Unprocessable, "columns.0.defaultValue", "not_applicable")
}
