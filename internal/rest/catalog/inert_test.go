package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// TestInert checks that no table is inert if it has user code, in each place where a table can have
// some.
func TestInert(t *testing.T) {
	t.Parallel()

	const code = `
		create function runs(anyelement) returns boolean language plpgsql immutable as $$ begin return true; end $$;
		create function runs() returns int language plpgsql immutable as $$ begin return 1; end $$;
		create function triggers() returns trigger language plpgsql as $$ begin return new; end $$;
		create table other (id int primary key);
		create table tested (
			id bigint generated always as identity primary key, name varchar(40) not null default 'x', price numeric(10, 2) check (price > 0),
			at timestamptz not null default now(), day date default current_date, owner uuid default gen_random_uuid(), data jsonb, tags text[],
			total numeric generated always as (price * 2) stored, other_id int references other);
		create index on tested (lower(name)) where price > 1;
		alter table tested enable row level security;
		create policy own on tested using (owner = (select current_setting('request.jwt.claims', true)::json->>'sub')::uuid and at < now());
		create type mood as enum ('sad', 'happy');
		alter table tested add mood mood, add moods mood[];`

	cases := []struct {
		name, sql   string
		read, write bool
	}{
		{"nothing of its own", "", true, true},
		{"a type of an extension", "create extension hstore; alter table tested add more hstore", true, true},
		{"a policy that calls a function", "create policy p on tested using (runs(id))", false, false},
		{"a policy for writing that calls a function",
			"create policy p on tested for insert with check (runs(id))", true, false},
		{"a policy with a function that changes the session",
			"create policy p on tested using (set_config('a.b', name, false) = '')", false, false},
		{"a policy with a function that runs SQL",
			"create policy p on tested using (query_to_xml(name, true, true, '') is null)", false, false},
		{"a policy that looks elsewhere",
			"create policy p on tested using (exists (select from other o where o.id = other_id))", false, false},
		{"a policy that casts to a domain",
			"create domain d as text check (runs(value)); create policy p on tested using (name::d = 'x')",
			false, false},
		{"a policy that calls a function with a body of PostgreSQL's functions",
			`create function claims() returns jsonb stable return current_setting('request.jwt.claims', true)::jsonb;
			create policy p on tested using (name = (select claims() ->> 'sub'))`, true, true},
		{"a policy that calls a function with a body that calls another",
			"create function a() returns int return runs(); create policy p on tested using (id = a())", false, false},
		{"a policy that calls a function with a body that reads a table",
			"create function a() returns int begin atomic select id from other; end; create policy p on tested using (id = a())",
			false, false},
		{"a policy that calls a function with a body in a string",
			"create function a() returns int language sql as 'select 1'; create policy p on tested using (id = a())",
			false, false},
		{"a default", "alter table tested alter price set default runs()", true, false},
		{"a generated column", "alter table tested add made boolean generated always as (runs(name)) stored", true,
			false},
		{"a check", "alter table tested add check (runs(name))", false, false},
		{"a check that is too large to examine",
			"do $$ begin execute format('alter table tested add check (name <> %L)', repeat('x', 500000)); end $$", false, false},
		{"an index on an expression", "create index on tested (runs(name))", false, false},
		{"an index on some rows", "create index on tested (name) where runs(name)", false, false},
		{"statistics on an expression", "create statistics s on runs(name), price from tested", false, false},
		{"a domain", "create domain d as int check (runs(value)); alter table tested add d d", false, false},
		{"an array of a domain", "create domain d as int check (runs(value)); alter table tested add d d[]",
			false, false},
		{"a composite",
			"create domain d as int check (runs(value)); create type pair as (a d); alter table tested add pair pair",
			false, false},
		{"a trigger", "create trigger t after insert on tested for each row execute function triggers()", true, false},
		{"a rule", "create rule r as on insert to tested do also select runs()", true, false},
		{"a child", "create table child () inherits (tested)", false, false},
		{"a cascade", "create table child (id bigint references tested on delete cascade)", true, false},
		{"a cascade of updates", "create table child (id bigint references tested on update cascade)", true, false},
		{"a reference", "create table child (id bigint references tested)", true, true},
		{"a reference to a table with a policy for its owner",
			"alter table other force row level security", true, false},
		{"a reference to a table whose index is planned with a function",
			"create index on other (id) where runs(1)", true, false},
		{"a partitioned table", "drop table tested; create table tested (id int) partition by list (id)", false, false},
		{"a view", "alter table tested rename to base; create view tested as select * from base", false, false},
		{"a materialized view",
			"alter table tested rename to base; create materialized view tested as select * from base", true, false},
	}

	var sql strings.Builder
	schemas := make([]string, len(cases))
	for i, c := range cases {
		schemas[i] = fmt.Sprintf("case%d", i)
		fmt.Fprintf(&sql, "create schema %s; set search_path = %[1]s; %s; %s;", schemas[i], code, c.sql)
	}

	all := read(t, sql.String(), schemas...)
	for i, c := range cases {
		r := all.Relations[catalog.Name{Schema: schemas[i], Name: "tested"}]
		if r.InertRead != c.read || r.InertWrite != c.write {
			t.Errorf("%s: inert is %v to read, %v to write; want %v, %v", c.name, r.InertRead, r.InertWrite,
				c.read, c.write)
		}
	}
}

// TestInertNowhere checks that code which any expression can use leaves no inert table in the
// database.
func TestInertNowhere(t *testing.T) {
	t.Parallel()

	for name, sql := range map[string]string{
		"an operator": `create function same(varchar, varchar) returns boolean language sql as 'select true';
			create operator === (leftarg = varchar, rightarg = varchar, function = same)`,
		"a cast": `create type mood as enum ('sad', 'happy');
			create function told(mood) returns json language sql as 'select null::json';
			create cast (mood as json) with function told(mood) as assignment`,
	} {
		if r := relation(t, read(t, "create table tested (id int);"+sql), "tested"); r.InertRead || r.InertWrite {
			t.Errorf("with %s: inert is %v to read, %v to write", name, r.InertRead, r.InertWrite)
		}
	}
}
