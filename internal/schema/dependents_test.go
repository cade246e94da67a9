package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/schema"
)

// update changes a column.
func (p *project) update(table, name string, u schema.ColumnUpdate) (schema.Column, error) {
	return schema.UpdateColumn(p.t.Context(), p.owner, p.uuid, table, name, u)
}

// dependents returns the dependents that a refusal lists, as kind and name.
func dependents(err error) string {
	all, _ := fault.Of(err).Extra["dependents"].([]schema.Dependent)
	var lines []string
	for _, d := range all {
		lines = append(lines, d.Kind+" "+d.Name)
	}

	return strings.Join(lines, ", ")
}

// TestUpdateTypeListsDependents: a change of the type that a dependent prevents names each of them.
func TestUpdateTypeListsDependents(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create table public.t (id integer primary key, a integer, b integer, c integer, d integer, e integer, f integer, g integer,
			twice integer generated always as (a * 2) stored)`,
		`create view public.seen as select b from public.t`, `create materialized view public.kept as select b from public.t`,
		`create policy own on public.t using (c > 0)`,
		`create function public.stamp() returns trigger language plpgsql as 'begin return new; end'`,
		`create trigger changed before update of d on public.t for each row execute function public.stamp()`,
		`create function public.most() returns integer language sql begin atomic select max(e) from public.t; end`,
		`create table public.parts (k integer, at date) partition by list (k)`,
		`create index on public.t (f) where f > 0`, `alter table public.t add constraint positive check (f > 0)`,
		`create table public.lines (t integer references public.t)`,
		`create table public.keyed (id serial primary key)`, `create table public.keys (id integer references public.keyed)`,
		`create rule noted as on insert to public.t where new.g > 0 do also insert into public.lines values (1)`,
		`create table public.row_of (a integer)`, `create domain public.rows as public.row_of[]`,
		`create type public.holder as (r public.rows)`,
		`create table public.holders (h public.holder, list public.row_of[], "A b" public.row_of)`,
		`create table public.parent (a integer)`, `create table public.other (a integer)`,
		`create table public.child (b integer) inherits (public.parent, public.other)`,
		`create table public.parts_1 partition of public.parts default partition by range (at)`,
		`create type public.form as (a integer)`, `create table public.formed of public.form`)

	for _, test := range []struct{ table, column, to, want string }{
		{"t", "a", "bigint", "generated column public.t.twice"},
		{"t", "b", "bigint", "materialized view public.kept, view public.seen"},
		{"t", "c", "bigint", "policy own on public.t"},
		{"t", "d", "bigint", "trigger changed on public.t"},
		{"t", "e", "bigint", "function public.most()"},
		{"t", "g", "bigint", "rule noted on public.t"},
		{"parts", "k", "bigint", "partition key public.parts"},
		{"keyed", "id", "text", "table constraint keyed_pkey on public.keyed, table constraint keys_id_fkey on public.keys"},
		{"row_of", "a", "bigint", `column public.holders."A b", column public.holders.h, column public.holders.list`},
		{"child", "a", "bigint", "table public.other, table public.parent"},
		{"parts_1", "k", "bigint", "table public.parts"},
		{"formed", "a", "bigint", "type public.form"},
		{"t", "f", "jsonb", "index public.t_f_idx, table constraint positive on public.t"},
		{"t", "id", "text", "table constraint lines_t_fkey on public.lines, table constraint t_pkey on public.t"},
	} {
		to := test.to
		_, err := p.update(test.table, test.column,
			schema.ColumnUpdate{Type: &to, Using: map[bool]string{true: "json"}[to == "jsonb"]})
		if got := dependents(err); got != test.want {
			t.Errorf("type %s of %s.%s: got dependents %q, want %q (%v)",
				to, test.table, test.column, got, test.want, err)
		}
	}

	no := false
	_, err := p.update("t", "f", schema.ColumnUpdate{Unique: &no})
	if err != nil {
		t.Errorf("a column that is not unique: %v", err)
	}

	p.sql(`alter table public.t add constraint single unique (f)`, `create table public.others (f integer references public.t (f))`)
	_, err = p.update("t", "f", schema.ColumnUpdate{Unique: &no})
	if got, want := dependents(err), "table constraint others_f_fkey on public.others"; got != want {
		t.Errorf("unique: got dependents %q, want %q (%v)", got, want, err)
	}

	p.sql(`create function public.half(integer) returns integer language sql immutable as 'select $1 / 2'`,
		`create index halves on public.t (public.half(a))`)
	err = schema.DeleteFunction(t.Context(), p.owner, "public", "half", nil)
	if got, want := dependents(err), "index public.halves"; got != want {
		t.Errorf("function: got dependents %q, want %q (%v)", got, want, err)
	}
}

// TestUpdateTypeConvertsDefault: the default is converted like the values, and names no former
// type.
func TestUpdateTypeConvertsDefault(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create type public.mood as enum ('sad', 'it''s ok')`, `create type public."Mood" as enum ('sad', 'ok')`,
		`create function public.pick() returns public.mood language sql as $$ select 'sad'::public.mood $$`)

	for i, test := range []struct{ from, value, using, to, want string }{
		{"mood", "sad", "", "text", "sad"},
		{"mood", "it's ok", "", "varchar(9)", "'it''s ok'"},
		{"mood", "sad", "trimmed", `"Mood"`, "sad"},
		{"mood[]", "{sad}", "", "text[]", "{sad}"},
		{"boolean", "true", "", "text", "true"},
		{"boolean", "true", "", "integer", "1"},
		{"integer", "5", "", "text", "5"},
		{"integer", "5", "", "bigint", "5"},
		{"text", " 7 ", "trimmed", "integer", "7"},
		{"text", "", "", "integer", ""},
		{"text", "draft", "one_element", "text[]", "{draft}"},
		{"bigint", "86400", "epoch_seconds", "timestamptz", "1970-01-02 00:00:00+00"},
		{"timestamptz", "now()", "", "date", "now()"},
		{"date", "2026-01-02", "", "text", "2026-01-02"},
	} {
		column := fmt.Sprintf("c%d", i)
		p.table(fmt.Sprintf("t%d", i),
			schema.NewColumn{Name: column, Type: test.from, DefaultValue: quotedValue(test.value)})
		c, err := p.update(fmt.Sprintf("t%d", i), column, schema.ColumnUpdate{Type: &test.to, Using: test.using})
		if err != nil || c.DefaultValue != test.want {
			t.Errorf("%s default %s to %s: got %q, %v, want %q",
				test.from, test.value, test.to, c.DefaultValue, err, test.want)
		}
	}

	p.sql(`create table public.called (m public.mood default public.pick())`)
	text := "text"
	if _, err := p.update("called", "m", schema.ColumnUpdate{Type: &text}); err != nil {
		t.Error(err)
	}

	if got := p.value(`select count(*) from pg_depend d join pg_attrdef a on a.oid = d.objid and d.classid = 'pg_attrdef'::regclass
		where d.refobjid = 'public.mood'::regtype`); got != "0" {
		t.Errorf("%s defaults still depend on the enum", got)
	}

	p.table("u", schema.NewColumn{Name: "a", Type: "text", DefaultValue: "'x'"})
	integer := "integer"
	_, err := p.update("u", "a", schema.ColumnUpdate{Type: &integer})
	wantFault(t, "a default that can't be converted", err, fault.Unprocessable, "defaultValue", "invalid_default")
}

// quotedValue returns a default as a quoted literal, but for a call and none.
func quotedValue(value string) string {
	if value == "" || strings.HasSuffix(value, "()") {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}

// TestMentions: functions whose text names what changes are told, those that merely have the word
// in a comment or as a part of another are not.
func TestMentions(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create table public.orders (id integer, total integer, note text)`,
		`create type public.mood as enum ('sad', 'ok')`,
		`create function public.f1() returns bigint language sql as 'select count(*) from public.Orders where "total" > 0'`,
		`create function public.f2() returns void language plpgsql as $$ begin execute 'delete from Orders where note = 1'; end $$`,
		`create function public.f3() returns integer language plpgsql as $$ begin /* orders.total */ return 1; -- orders
			end $$`,
		`create function public.f4() returns integer language sql as 'select 1 as orders_total'`,
		`create function public.f5(a integer) returns text language sql as $$ select 'sad'::public.mood::text $$`)

	for _, test := range []struct {
		kind, name, part, want string
	}{
		{"table", "orders", "", "public.f1(), public.f2()"},
		{"column", "orders", "total", "public.f1()"},
		{"column", "orders", "note", "public.f2()"},
		{"column", "orders", "id", ""},
		{"enum", "mood", "", "public.f5(integer)"},
	} {
		names := append([]string{test.name}, strings.Fields(test.part)...)
		all, err := schema.Mentions(t.Context(), p.platform, names...)
		if err != nil {
			t.Fatal(err)
		}

		var found []string
		for _, d := range all {
			found = append(found, d.Name)
		}

		if got := strings.Join(found, ", "); got != test.want {
			t.Errorf("%s %s %s: got %q, want %q", test.kind, test.name, test.part, got, test.want)
		}
	}
}

// TestAnswersAreAccepted: a type, a default and a name that a list answers are accepted for a new
// column, and give the same.
func TestAnswersAreAccepted(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema app`, `create schema "My App"`, `create type public."Mood" as enum ('sad', 'So So')`, `create type app."Mood" as enum ('up')`,
		`create type "My App".state as enum ('on')`, `create type public.select as (a integer)`,
		`create type public."a.b" as enum ('x')`,
		`create domain public."Full Name" as varchar(9)`, `create domain app.tags as text[]`,
		`create function public.token() returns text language sql as $$ select 'x' $$`, `create sequence public."My seq"`,
		`create table public."My Table" ("The Key" integer primary key, m public."Mood" default 'So So', ms public."Mood"[] default '{sad,"So So"}',
			am app."Mood" default 'up', s "My App".state, ss "My App".state[], sel public.select, ab public."a.b" default 'x',
			fn public."Full Name" default 'x', t app.tags, i interval day to second(3) default '1 day', i2 interval(2)[],
			n numeric(10,-2) default -1.5, c char(3) default 'a''b', b bit(3) default B'101', by bytea default '\x00ff',
			d date default current_date, ts timestamp(3) default localtimestamp, u uuid default gen_random_uuid(),
			x text default public.token(), y integer default nextval('public."My seq"'), z text default lower('A') || 'b',
			e text default '', q text default 'now()', nn text default 'null', v varchar default 'a -- b', arr text[] default array['a', 'b,c'],
			j jsonb default '{"a": [1, "x''y"]}', p point default '(1,2)', bo boolean default true, r int4range default '[1,5)',
			dp double precision default 'NaN', l bigint default 9223372036854775807, usr name default current_user)`,
		`create table public.computed (a integer, b integer generated always as (a * 2) stored)`)
	p.table("again", column("id"))

	table, err := schema.GetTable(t.Context(), p.platform, p.uuid, "public.My Table")
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range p.columns(table.FullName()) {
		if c.Primary {
			continue
		}

		got, err := p.add("again", schema.NewColumn{Name: c.Name, Type: c.Type, DefaultValue: c.DefaultValue})
		if err != nil || got.Type != c.Type || got.DefaultValue != c.DefaultValue {
			t.Errorf("%s %s default %s: got %s default %s, %v",
				c.Name, c.Type, c.DefaultValue, got.Type, got.DefaultValue, err)
		}

		same := schema.ColumnUpdate{Type: &c.Type, DefaultValue: &c.DefaultValue}
		if _, err := p.update(table.FullName(), c.Name, same); err != nil {
			t.Errorf("%s %s default %s, for itself: %v", c.Name, c.Type, c.DefaultValue, err)
		}
	}

	foreign, err := p.add("again", schema.NewColumn{Name: "ref", Type: "integer", Foreign: true,
		ReferenceTable: table.FullName(), ReferenceColumn: "The Key"})
	if err != nil || foreign.ReferenceTable == nil || *foreign.ReferenceTable != table.FullName() {
		t.Errorf("a reference to %s: got %+v, %v", table.FullName(), foreign, err)
	}

	// The name of an enum, as its list has it.
	enums, _, err := schema.ListEnums(t.Context(), p.platform, pg.Page{Number: 1, Limit: 20, Sort: "name"})
	if err != nil {
		t.Fatal(err)
	}

	for i, e := range enums {
		name := e.Schema + "." + e.Name
		if strings.ContainsAny(name, ` `) || strings.Count(name, ".") > 1 { // need quotes in a type
			continue
		}

		if c, err := p.add("again", schema.NewColumn{Name: fmt.Sprintf("enum%d", i), Type: name}); err != nil {
			t.Errorf("enum %s: got %+v, %v", name, c, err)
		}
	}

	if c, err := p.add("again", schema.NewColumn{Name: "bare", Type: "Mood[]"}); err != nil || c.Type != `"Mood"[]` {
		t.Errorf("Mood[]: got %+v, %v", c, err)
	}
}

// TestUpdateTypeNamesTheReason: a type that the column can't have is told as such, not as values or
// a default that can't be converted.
func TestUpdateTypeNamesTheReason(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create type public.mood as enum ('1')`, `create domain public.positive as integer check (value > 0)`,
		`create table public.t (id integer generated always as identity primary key, m integer default 1)`)

	for _, test := range []struct{ column, to, code string }{
		{"id", "text", "invalid_type"},
		{"id", "numeric", "invalid_type"},
		{"id", "public.positive", "invalid_type"},
		{"m", "public.mood", "no_cast"},
		{"m", "integer[]", "no_cast"},
	} {
		_, err := p.update("t", test.column, schema.ColumnUpdate{Type: &test.to})
		if f := fault.Of(err); f.CodeWord() != test.code || f.Fields[0].Name != "type" {
			t.Errorf("%s to %s: got %v, want %s of the field type", test.column, test.to, err, test.code)
		}
	}

	to, using := "bigint", "trimmed"
	if _, err := p.update("t", "id", schema.ColumnUpdate{Type: &to}); err != nil {
		t.Errorf("bigint for an identity column: %v", err)
	}

	to = "public.mood"
	got, err := p.update("t", "m", schema.ColumnUpdate{Type: &to, Using: using})
	if err != nil || got.DefaultValue != "1" {
		t.Errorf("an enum by text: got the default %q, %v, want 1", got.DefaultValue, err)
	}
}
