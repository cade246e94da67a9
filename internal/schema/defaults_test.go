package schema_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/schema"
)

// TestDefaults checks the representation of a default, the value that a row gets, and that the
// representation creates the same default again.
func TestDefaults(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema app`, `create type public.mood as enum ('in progress', 'done')`,
		`create type app.mood as enum ('up')`,
		`create domain public.email as text check (value like '%@%')`,
		`create domain app.age as integer not null check (value > 0)`,
		`create type public.pair as (a int, b text)`)

	for _, test := range []struct{ typ, sent, shown, value string }{
		{"integer", "", "", "<null>"}, {"integer", "null", "", "<null>"}, {"text", " NULL ", "", "<null>"},
		{"text", "''", "''", ""}, {"text", "'null'", "'null'", "null"}, {"integer", "5", "5", "5"},
		{"integer", "-5", "-5", "-5"}, {"integer", "'7'", "7", "7"}, {"integer", "'7'::integer", "7", "7"},
		{"integer", "'7' :: int4", "7", "7"},
		{"bigint", "9223372036854775807", "9223372036854775807", "9223372036854775807"},
		{"numeric(10,2)", "1.5", "1.5", "1.50"}, {"double precision", "1e3", "1000", "1000"},
		{"boolean", "true", "true", "true"}, {"boolean", "yes", "true", "true"}, {"text", "draft", "draft", "draft"},
		{"text", "in progress", "in progress", "in progress"}, {"text", "'draft'", "draft", "draft"},
		{"text", "'draft'::text", "draft", "draft"}, {"text", "'it''s'", "'it''s'", "it's"},
		{"text", "'a;b(c)'", "'a;b(c)'", "a;b(c)"}, {"text", "'now()'", "'now()'", "now()"},
		{"text", "'current_date'", "'current_date'", "current_date"}, {"text", "' padded '", "' padded '", " padded "},
		{"text", "Ünïcödé 日本 _-.:/@+#%&!?=~*^", "Ünïcödé 日本 _-.:/@+#%&!?=~*^", "Ünïcödé 日本 _-.:/@+#%&!?=~*^"},
		{"text", "'back\\slash'", "'back\\slash'", "back\\slash"},
		{"text", "'two\nlines'", "'two\nlines'", "two\nlines"}, {"text", "user", "user", "user"},
		{"text", "unique", "unique", "unique"}, {"text", "'a'' || ''b'", "'a'' || ''b'", "a' || 'b"},
		{"text", "'1 references t'", "'1 references t'", "1 references t"}, {"varchar(5)", "abcde", "abcde", "abcde"},
		{"varchar(5)", "'abc'::varchar", "abc", "abc"}, {"varchar(5)", "'abc'::character varying(5)", "abc", "abc"},
		{"char(3)", "x", "x", "x"}, {"bit(3)", "101", "101", "101"},
		{"uuid", "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001",
			"00000000-0000-0000-0000-000000000001"},
		{"date", "2026-11-21", "2026-11-21", "2026-11-21"},
		{"timestamptz", "2026-11-21T10:00:00Z", "2026-11-21 10:00:00+00", "2026-11-21 10:00:00+00"},
		{"timestamp", "infinity", "infinity", "infinity"}, {"interval", "1 day", "1 day", "1 day"},
		{"interval(3)", "2 hours", "02:00:00", "02:00:00"}, {"time", "10:30", "10:30:00", "10:30:00"},
		{"json", `{"a": "it's (1)"}`, `{"a": "it's (1)"}`, `{"a": "it's (1)"}`}, {"jsonb", "[]", "[]", "[]"},
		{"jsonb", "'null'", "'null'", "null"}, {"jsonb", `"x"`, `"x"`, `"x"`}, {"bytea", `\xdead`, `\xdead`, `\xdead`},
		{"text[]", "{}", "{}", "{}"}, {"text[]", "'{a,\"b c\"}'", `{a,"b c"}`, `{a,"b c"}`},
		{"integer[]", "{1,2}", "{1,2}", "{1,2}"}, {"int4range", "[1,5)", "[1,5)", "[1,5)"},
		{"mood", "in progress", "in progress", "in progress"}, {"mood", "'done'::mood", "done", "done"},
		{"mood[]", "{done}", "{done}", "{done}"}, {"app.mood", "'up'::app.mood", "up", "up"},
		{"email", "a@b", "a@b", "a@b"}, {"email", "'o''hara@b'", "'o''hara@b'", "o'hara@b"},
		{"app.age", "30", "30", "30"}, {"pair", `(1,"b c")`, `(1,"b c")`, `(1,"b c")`},
		{"inet", "10.0.0.1/8", "10.0.0.1/8", "10.0.0.1/8"},
	} {
		p.sql(`drop table if exists public.t`)
		p.table("t", schema.NewColumn{Name: "a", Type: test.typ, DefaultValue: test.sent})

		shown := p.columns("t")[0].DefaultValue
		if shown != test.shown {
			t.Errorf("default %s of %s: got representation %s, want %s", test.sent, test.typ, shown, test.shown)
		}

		if again, err := p.add("t", schema.NewColumn{Name: "b", Type: test.typ, DefaultValue: shown}); err != nil ||
			again.DefaultValue != shown {
			t.Errorf("representation %s of a default of %s: got %s (%v) for it, want the same",
				shown, test.typ, again.DefaultValue, err)
			continue
		}

		p.sql(`insert into public.t default values`)

		for _, name := range []string{"a", "b"} {
			if got := p.value(`select ` + name + ` from public.t`); got != test.value {
				t.Errorf("default %s of %s: column %s got %s, want %s", test.sent, test.typ, name, got, test.value)
			}
		}
	}
}

func TestDefaultCalls(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("t", column("id"))

	for i, test := range []struct{ typ, sent, shown string }{
		{"timestamptz", "now()", "now()"}, {"timestamptz", " NOW ( ) ", "now()"}, {"timestamp", "now()", "now()"},
		{"date", "now()", "now()"}, {"text", "now()", "now()"},
		{"timestamptz", "current_timestamp", "CURRENT_TIMESTAMP"}, {"timestamp", "localtimestamp", "LOCALTIMESTAMP"},
		{"date", "CURRENT_DATE", "CURRENT_DATE"}, {"timestamp", "current_date", "CURRENT_DATE"},
		{"timetz", "current_time", "CURRENT_TIME"}, {"time", "current_time", "CURRENT_TIME"},
		{"time", "localtime", "LOCALTIME"}, {"varchar(80)", "clock_timestamp()", "clock_timestamp()"},
		{"timestamptz", "statement_timestamp()", "statement_timestamp()"},
		{"timestamptz(3)", "transaction_timestamp()", "transaction_timestamp()"},
		{"uuid", "gen_random_uuid()", "gen_random_uuid()"}, {"text", "Gen_Random_UUID()", "gen_random_uuid()"},
	} {
		c, err := p.add("t", schema.NewColumn{Name: "c" + string(rune('a'+i)), Type: test.typ, DefaultValue: test.sent})
		if err != nil || c.DefaultValue != test.shown {
			t.Errorf("default %s of %s: got representation %q (%v), want %q", test.sent, test.typ, c.DefaultValue,
				err, test.shown)
			continue
		}

		if again, err := p.add("t", schema.NewColumn{
			Name:         c.Name + "2",
			Type:         c.Type,
			DefaultValue: c.DefaultValue,
		}); err != nil || again.DefaultValue != c.DefaultValue {
			t.Errorf("representation %s: got %s (%v) for it, want the same", c.DefaultValue, again.DefaultValue, err)
		}
	}

	p.sql(`insert into public.t default values`)
}

// TestDefaultsRefused checks that invalid values and attempts at SQL injection are rejected.
func TestDefaultsRefused(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create domain public.email as text check (value like '%@%')`, `create type public.mood as enum ('ok')`,
		`create function public.fail(text) returns boolean language plpgsql as 'begin raise exception ''no %'', $1; end'`,
		`create domain public.trap as text check (public.fail(value))`)

	p.table("canary", column("id"))
	p.sql(`insert into public.canary values (1), (2)`)
	before := p.snapshot()

	for _, typ := range []string{
		"integer", "text", "varchar(200)", "timestamptz", "text[]", "jsonb", "boolean", "email", "mood", "uuid",
	} {
		for _, hostile := range []string{
			"1, ADD COLUMN x int", "1) CHECK (true", "1 REFERENCES canary", "1 REFERENCES canary(id)", "$$a$$ NOT NULL",
			"'a' NOT NULL", "'; drop table canary; --", "a'; drop table public.canary; --", "1 -- x", "1 /* x */",
			"(select 1)", "(select max(id) from public.canary)", "pg_sleep(60)", "pg_catalog.pg_sleep(60)",
			"set_config('role', 'postgres', false)", "pg_advisory_lock(1)", "query_to_xml('select 1', true, true, '')",
			"pg_terminate_backend(1)", "nextval('x')", "lo_import('/etc/passwd')", "current_user", "session_user",
			"current_setting('port')", "version()", "now() at time zone 'x'", "now(); drop table canary",
			"now() + interval '1 day'", "E'\\x41'", "U&'\\0041'", "'a' 'b'", "'a' || 'b'", "'a", "a'",
			"'a'::text; drop table canary", "'a'::text not null", "'a'::text, add column x int", "'a'::regclass",
			"'public.canary'::regclass", "cast('a' as text)", "uuid_generate_v4()", "1 PRIMARY KEY", "1 UNIQUE",
			"1 GENERATED ALWAYS AS IDENTITY", "1 COLLATE \"C\"", "a\x00b", "a\xffb", "ARRAY[1]", "row(1)", "1;", "`id`",
			"@@x(", "'a'::", "'1'::varchar(3)",
		} {
			_, err := p.add("canary", schema.NewColumn{Name: "x", Type: typ, DefaultValue: hostile})
			wantFault(t, "default "+hostile+" of "+typ, err, fault.Unprocessable, "columns.0.defaultValue",
				"invalid_default")
		}
	}

	for _, test := range []struct{ typ, sent string }{
		{"integer", "five"}, {"integer", "1.5"}, {"integer", "2147483648"}, {"integer", "now()"},
		{"integer", "'5'::bigint"}, {"smallint", "99999"}, {"numeric(3,1)", "100"}, {"varchar(3)", "abcd"},
		{"varchar(3)", "'abcd'"}, {"varchar(80)", "'abcd'::varchar(3)"}, {"char(3)", "abcd"}, {"bit(3)", "10"},
		{"boolean", "maybe"}, {"date", "2026-02-30"}, {"date", "now"}, {"timestamptz", "'now'"},
		{"timestamp", "Tomorrow 10:00"}, {"date", "gen_random_uuid()"}, {"uuid", "now()"}, {"time", "current_date"},
		{"interval", "now()"}, {"jsonb", "{a}"}, {"jsonb", "now()"}, {"text[]", "a"}, {"mood", "sad"},
		{"email", "nobody"}, {"varchar(3)[]", "{abcd}"}, {"trap", "x"}, {"xml", "<a>"}, {"bytea", `\xzz`},
		{"uuid", "1"}, {"integer", "''"},
	} {
		_, err := p.add("canary", schema.NewColumn{Name: "x", Type: test.typ, DefaultValue: test.sent})
		wantFault(t, "default "+test.sent+" of "+test.typ, err, fault.Unprocessable, "columns.0.defaultValue",
			"invalid_default")
	}

	_, err := p.add("canary", schema.NewColumn{Name: "x", Type: "uuid", DefaultValue: "auth.uid()"})
	if err == nil || !strings.Contains(err.Error(), "nor a supported call") {
		t.Errorf("unsupported call: got %v, want an error that names supported calls", err)
	}

	if after := p.snapshot(); after != before {
		t.Errorf("rejected defaults changed the catalog: got\n%s\nwant\n%s", after, before)
	}
}

// TestDefaultsOfSQL checks the representation of all defaults that SQL can create.
func TestDefaultsOfSQL(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create table public.t (a text default upper('x'), b text default null, c integer default 1 + 1, d varchar(9) default 'x'::text,
		e timestamp default 'now'::text::timestamp, f serial, g integer generated always as (1) stored, h text default ('a'::text), i text default 'a'::varchar)`)

	want := map[string]string{"a": "upper('x'::text)", "b": "", "c": "(1 + 1)", "d": "x",
		"e": "('now'::text)::timestamp without time zone", "f": "nextval('public.t_f_seq'::regclass)", "g": "1",
		"h": "a", "i": "'a'::character varying"}

	for _, c := range p.columns("t") {
		if c.DefaultValue != want[c.Name] {
			t.Errorf("default of %s: got representation %s, want %s", c.Name, c.DefaultValue, want[c.Name])
		}
	}
}
