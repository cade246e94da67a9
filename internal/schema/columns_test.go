package schema_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/schema"
)

func text(s string) *string { return &s }

func TestCreateTable(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema app`)

	p.table("users", schema.NewColumn{
		Name:         "id",
		Type:         "uuid",
		Primary:      true,
		DefaultValue: "gen_random_uuid()",
	}, schema.NewColumn{Name: "email", Type: "varchar(80)", NotNull: true, Unique: true})

	created, err := schema.CreateTable(t.Context(), p.owner,
		schema.NewTable{Name: "Orders", Schema: "app", Columns: []schema.NewColumn{
			{Name: "id", Type: "bigserial", Primary: true, Unique: true},
			{Name: "parent", Type: "bigint", Foreign: true, ReferenceTable: "app.Orders", ReferenceColumn: "id"},
			{Name: "owner", Type: "uuid", NotNull: true, Foreign: true, ReferenceTable: "users", ReferenceColumn: "id"},
			{Name: "state", Type: "text", NotNull: true, DefaultValue: "draft"},
			{Name: "mail", Type: "varchar(80)", ReferenceTable: "public.users", ReferenceColumn: "email"},
			{Name: "select", Type: "timestamptz", DefaultValue: "now()"},
		}})
	if err != nil || created.FullName() != "app.Orders" || created.ID == 0 || created.EstimatedRows != 0 ||
		created.TotalSize != "16 kB" {
		t.Fatalf("create table: got %+v (%v), want app.Orders with 16 kB", created, err)
	}

	want := []schema.Column{
		{Name: "id", Type: "bigint", Position: 1, NotNull: true, Unique: true, Primary: true,
			Identity: text("by default")},
		{Name: "parent", Type: "bigint", Position: 2, Foreign: true,
			ReferenceTable: text("app.Orders"), ReferenceColumn: text("id")},
		{Name: "owner", Type: "uuid", Position: 3, NotNull: true, Foreign: true,
			ReferenceTable: text("public.users"), ReferenceColumn: text("id")},
		{Name: "state", Type: "text", Position: 4, NotNull: true, DefaultValue: "draft"},
		{Name: "mail", Type: "varchar(80)", Position: 5, Foreign: true,
			ReferenceTable: text("public.users"), ReferenceColumn: text("email")},
		{Name: "select", Type: "timestamptz", Position: 6, DefaultValue: "now()"},
	}
	if diff := cmp.Diff(want, p.columns("app.Orders")); diff != "" {
		t.Errorf("columns:\n%s", diff)
	}

	if got := p.value(
		`select relrowsecurity and pg_get_userbyid(relowner) like 'owner_of_%' and relacl is null from pg_class where oid = ` + strconv.Itoa(int(created.ID)),
	); got != "true" {
		t.Error("the new table has no row level security, or another owner")
	}

	p.table("pairs", schema.NewColumn{
		Name:    "a",
		Type:    "integer",
		Primary: true,
	}, schema.NewColumn{Name: "b", Type: "integer", Primary: true})

	if got := p.value(`select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'public.pairs'::regclass and contype = 'p'`); got != "PRIMARY KEY (a, b)" {
		t.Errorf("composite key: got %s", got)
	}

	for _, c := range p.columns("pairs") {
		if !c.Primary || c.Unique || !c.NotNull {
			t.Errorf("column of a composite key: got %+v, want primary, not null, not unique", c)
		}
	}
}

// TestRowLevelSecurity checks that new tables have row level security also without the event
// trigger.
func TestRowLevelSecurity(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.run(p.platform, `drop event trigger close_new_tables`)
	p.table("orders", column("id"))

	if got := p.value(`select relrowsecurity from pg_class where oid = 'public.orders'::regclass`); got != "true" {
		t.Error("the new table has no row level security")
	}
}

func TestCreateTableRefused(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("taken", column("id"))
	p.sql(`create view public.view as select 1`, `create type public.mood as enum ('a')`)
	p.run(p.platform, `create schema extensions`)

	before := p.snapshot()
	ids := []schema.NewColumn{column("id")}
	many := make([]schema.NewColumn, 1601)
	for i := range many {
		many[i] = column("c" + strconv.Itoa(i))
	}

	for label, test := range map[string]struct {
		table schema.NewTable
		kind  fault.Kind
		field string
		code  string
	}{
		"no name": {schema.NewTable{Columns: ids}, fault.Unprocessable, "name", "required"},
		"hostile name": {schema.NewTable{Name: `x"; drop table public.taken; --`, Columns: ids},
			fault.Unprocessable, "name", "invalid_format"},
		"64 bytes": {schema.NewTable{Name: strings.Repeat("a", 64), Columns: ids}, fault.Unprocessable, "name",
			"invalid_format"},
		"taken":         {schema.NewTable{Name: "taken", Columns: ids}, fault.Conflict, "name", "already_exists"},
		"a view's name": {schema.NewTable{Name: "view", Columns: ids}, fault.Conflict, "name", "already_exists"},
		"a type's name": {schema.NewTable{Name: "mood", Columns: ids}, fault.Conflict, "name", "already_exists"},
		"platform's schema": {schema.NewTable{Name: "x", Schema: "auth", Columns: ids}, fault.Invalid,
			"schema", "reserved"},
		"catalog": {schema.NewTable{Name: "x", Schema: "pg_catalog", Columns: ids}, fault.Invalid,
			"schema", "reserved"},
		"temporary": {schema.NewTable{Name: "x", Schema: "pg_temp", Columns: ids}, fault.Invalid,
			"schema", "reserved"},
		"hostile schema": {schema.NewTable{Name: "x", Schema: "a.b", Columns: ids}, fault.Unprocessable, "schema",
			"invalid_format"},
		"no such schema": {schema.NewTable{Name: "x", Schema: "nothing", Columns: ids}, fault.Unprocessable,
			"schema", "not_found"},
		"another's schema": {schema.NewTable{Name: "x", Schema: "extensions", Columns: ids}, fault.Unprocessable,
			"schema", "not_owned"},
		"no columns":   {schema.NewTable{Name: "x"}, fault.Unprocessable, "columns", "required"},
		"1601 columns": {schema.NewTable{Name: "x", Columns: many}, fault.Unprocessable, "columns", "too_many"},
		"its own row": {schema.NewTable{Name: "x", Columns: []schema.NewColumn{{Name: "a", Type: "x"}}},
			fault.Unprocessable, "columns.0.type", "invalid_type"},
		"a bad last column": {
			schema.NewTable{Name: "x",
				Columns: []schema.NewColumn{column("a"), {Name: "b", Type: "integer", DefaultValue: "five"}}},
			fault.Unprocessable, "columns.1.defaultValue", "invalid_default",
		},
		"a bad reference": {
			schema.NewTable{Name: "x",
				Columns: []schema.NewColumn{column("a"),
					{Name: "b", Type: "integer", ReferenceTable: "taken", ReferenceColumn: "id"}}}, fault.Unprocessable,
			"columns.1.referenceColumn", "not_unique",
		},
	} {
		_, err := schema.CreateTable(t.Context(), p.owner, test.table)
		wantFault(t, label, err, test.kind, test.field, test.code)
	}

	if after := p.snapshot(); after != before {
		t.Errorf("rejected tables changed the catalog: got\n%s\nwant\n%s", after, before)
	}
	if created := p.table("wide", many[:1600]...); len(p.columns(created.FullName())) != 1600 {
		t.Error("the table of 1600 columns lacks some of them")
	}

	_, err := p.add("wide", column("last"))
	wantFault(t, "column 1601", err, fault.Unprocessable, "columns", "too_many")
}

func TestCreateColumns(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("users", schema.NewColumn{Name: "id", Type: "serial", Primary: true})
	p.sql(`insert into public.users default values`, `insert into public.users default values`,
		`alter table public.users add gone int`, `alter table public.users drop gone`)

	got, err := schema.CreateColumns(t.Context(), p.owner, p.uuid, "public.users", []schema.NewColumn{
		{Name: "state", Type: "varchar(20)", NotNull: true, DefaultValue: "new"},
		{Name: "Key", Type: "uuid", NotNull: true, Unique: true, DefaultValue: "gen_random_uuid()"},
		{Name: "boss", Type: "integer", Foreign: true, ReferenceTable: "users", ReferenceColumn: "id"},
		{Name: "oldest", Type: "uuid", Foreign: true, ReferenceTable: "users", ReferenceColumn: "Key"},
	})

	want := []schema.Column{
		{Name: "state", Type: "varchar(20)", Position: 3, NotNull: true, DefaultValue: "new"},
		{Name: "Key", Type: "uuid", Position: 4, NotNull: true, Unique: true, DefaultValue: "gen_random_uuid()"},
		{Name: "boss", Type: "integer", Position: 5, Foreign: true,
			ReferenceTable: text("public.users"), ReferenceColumn: text("id")},
		{Name: "oldest", Type: "uuid", Position: 6, Foreign: true,
			ReferenceTable: text("public.users"), ReferenceColumn: text("Key")},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}

	if diff := cmp.Diff(want, p.columns("users")[1:]); diff != "" {
		t.Errorf("as listed:\n%s", diff)
	}
	if got := p.value(`select count(distinct "Key") || state from public.users group by state`); got != "2new" {
		t.Errorf("rows: got %s, want two keys and the state new", got)
	}
}

// TestCreateColumnsRefused checks that each error names its field and that no column is created,
// although another column of the request is valid.
func TestCreateColumnsRefused(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("users", schema.NewColumn{
		Name:    "id",
		Type:    "serial",
		Primary: true,
	}, schema.NewColumn{Name: "email", Type: "text"})

	p.sql(`insert into public.users (email) values ('a'), ('b')`, `create domain public.full as text not null`,
		`create domain public.long as text check (length(value) > 3)`,
		`create table public.parent (id int primary key) partition by range (id)`,
		`create table public.child partition of public.parent for values from (0) to (9)`,
		`create table public.late (id int unique deferrable)`, `create view public.view as select 1 as id`)

	p.run(p.platform, `create table public.theirs (id int primary key)`)
	before := p.snapshot()

	type N = schema.NewColumn
	for label, test := range map[string]struct {
		column N
		kind   fault.Kind
		field  string
		code   string
	}{
		"no name": {N{Type: "text"}, fault.Unprocessable, "name", "required"},
		"hostile name": {N{Name: `x"; drop table users; --`, Type: "text"}, fault.Unprocessable, "name",
			"invalid_format"},
		"newline": {N{Name: "a\n", Type: "text"}, fault.Unprocessable, "name", "invalid_format"},
		"multibyte name": {N{Name: strings.Repeat("é", 32), Type: "text"}, fault.Unprocessable, "name",
			"invalid_format"},
		"repeated":      {N{Name: "fine", Type: "text"}, fault.Unprocessable, "name", "duplicate"},
		"there already": {N{Name: "email", Type: "text"}, fault.Conflict, "name", "already_exists"},
		"no type":       {N{Name: "x"}, fault.Unprocessable, "type", "required"},
		"not null, no default": {N{Name: "x", Type: "text", NotNull: true}, fault.Unprocessable, "notNull",
			"no_default"},
		"domain not null": {N{Name: "x", Type: "full"}, fault.Unprocessable, "type", "no_default"},
		"domain check": {N{Name: "x", Type: "long", DefaultValue: "abc"}, fault.Unprocessable,
			"defaultValue", "invalid_default"},
		"equal values": {N{Name: "x", Type: "text", Unique: true, DefaultValue: "a"}, fault.Unprocessable,
			"unique", "not_unique"},
		"not comparable": {N{Name: "x", Type: "json", Unique: true}, fault.Unprocessable, "unique",
			"not_supported"},
		"second key": {N{Name: "x", Type: "integer", Primary: true, DefaultValue: "1"}, fault.Conflict,
			"primary", "already_exists"},
		"key without value": {N{Name: "x", Type: "integer", Primary: true}, fault.Unprocessable, "primary",
			"no_default"},
		"foreign to nothing": {N{Name: "x", Type: "integer", Foreign: true}, fault.Unprocessable,
			"referenceTable", "required"},
		"foreign to no column": {N{Name: "x", Type: "integer", ReferenceTable: "users"}, fault.Unprocessable,
			"referenceColumn", "required"},
		"foreign to no table": {N{Name: "x", Type: "integer", ReferenceColumn: "id"}, fault.Unprocessable,
			"referenceTable", "required"},
		"reference to no table": {N{Name: "x", Type: "integer", ReferenceTable: "nothing", ReferenceColumn: "id"},
			fault.Unprocessable, "referenceTable", "not_found"},
		"reference to a view": {N{Name: "x", Type: "integer", ReferenceTable: "view", ReferenceColumn: "id"},
			fault.Unprocessable, "referenceTable", "not_found"},
		"reference to no column": {
			N{Name: "x", Type: "integer", ReferenceTable: "users", ReferenceColumn: "nothing"}, fault.Unprocessable,
			"referenceColumn", "not_found",
		},
		"reference to a system's": {N{Name: "x", Type: "integer", ReferenceTable: "users", ReferenceColumn: "ctid"},
			fault.Unprocessable, "referenceColumn", "not_found"},
		"reference to what repeats": {N{Name: "x", Type: "text", ReferenceTable: "users", ReferenceColumn: "email"},
			fault.Unprocessable, "referenceColumn", "not_unique"},
		"reference to deferrable": {N{Name: "x", Type: "integer", ReferenceTable: "late", ReferenceColumn: "id"},
			fault.Unprocessable, "referenceColumn", "not_unique"},
		"reference to another type": {N{Name: "x", Type: "text", ReferenceTable: "users", ReferenceColumn: "id"},
			fault.Unprocessable, "type", "invalid_type"},
		"reference to no value": {
			N{Name: "x", Type: "integer", DefaultValue: "99", ReferenceTable: "users", ReferenceColumn: "id"},
			fault.Unprocessable, "defaultValue", "not_found",
		},
		"reference to another's": {N{Name: "x", Type: "integer", ReferenceTable: "theirs", ReferenceColumn: "id"},
			fault.Unprocessable, "referenceTable", "not_supported"},
		"reference to the platform": {N{Name: "x", Type: "uuid", ReferenceTable: "auth.users", ReferenceColumn: "id"},
			fault.Unprocessable, "referenceTable", "invalid_value"},
		"reference to the catalogue": {
			N{Name: "x", Type: "oid", ReferenceTable: "pg_catalog.pg_class", ReferenceColumn: "oid"},
			fault.Unprocessable, "referenceTable", "invalid_value",
		},
		"hostile reference": {
			N{Name: "x", Type: "integer", ReferenceTable: "users (id); drop table users; --", ReferenceColumn: "id"},
			fault.Unprocessable, "referenceTable", "invalid_value",
		},
		"hostile reference column": {
			N{Name: "x", Type: "integer", ReferenceTable: "users", ReferenceColumn: "id) on delete cascade --"},
			fault.Unprocessable, "referenceColumn", "invalid_format",
		},
	} {
		_, err := schema.CreateColumns(t.Context(), p.owner, p.uuid, "users",
			[]N{{Name: "fine", Type: "text"}, test.column})
		wantFault(t, label, err, test.kind, "columns.1."+test.field, test.code)
	}

	for _, name := range []string{"ctid", "oid", "xmin", "xmax", "cmin", "cmax", "tableoid"} {
		_, err := p.add("users", column(name))
		wantFault(t, name, err, fault.Unprocessable, "columns.0.name", "reserved")
	}

	for label, test := range map[string]struct {
		table string
		kind  fault.Kind
		field string
		code  string
	}{
		"no table":    {"nothing", fault.NotFound, "", "not_found"},
		"a view":      {"view", fault.NotFound, "", "not_found"},
		"platform's":  {"auth.users", fault.Invalid, "table", "invalid_value"},
		"a UUID":      {schema.TableUUID(p.uuid, 1).String(), fault.NotFound, "", "not_found"},
		"a partition": {"child", fault.Unprocessable, "", "not_supported"},
		"another's":   {"theirs", fault.Unprocessable, "", "not_owned"},
	} {
		_, err := schema.CreateColumns(t.Context(), p.owner, p.uuid, test.table, []N{column("x")})
		wantFault(t, label, err, test.kind, test.field, test.code)
	}

	_, err := schema.CreateColumns(t.Context(), p.owner, p.uuid, "users", nil)
	wantFault(t, "no columns", err, fault.Unprocessable, "columns", "required")

	for _, ref := range badTableNames {
		_, err := p.add(ref, column("x"))
		wantFault(t, "columns of "+ref, err, fault.Invalid, "table", "invalid_value")
		_, _, err = schema.ListColumns(t.Context(), p.platform, p.uuid, ref)
		wantFault(t, "list columns of "+ref, err, fault.Invalid, "table", "invalid_value")
	}

	if after := p.snapshot(); after != before {
		t.Errorf("rejected columns changed the catalog: got\n%s\nwant\n%s", after, before)
	}
}

// TestUserCodeIsBounded checks that the timeout of a change ends user code that traps its
// cancellation.
func TestUserCodeIsBounded(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("t", column("id"))

	p.sql(`create function public.slow(text) returns boolean language plpgsql as $$ begin
			perform pg_catalog.set_config('statement_timeout', '0', false);
			loop begin perform pg_catalog.pg_sleep(3600); exception when query_canceled then null; end; end loop;
		end $$`,
		`create domain public.trap as text check (public.slow(value))`)

	_, err := p.add("t", schema.NewColumn{Name: "x", Type: "trap", DefaultValue: "a"})
	wantFault(t, "slow domain", err, fault.Unprocessable, "", "timeout")
	p.waitFor(`not exists (select from pg_stat_activity where usename like 'owner_of_%' and datname = current_database() and wait_event = 'PgSleep')`)

	if _, err := p.add("t", schema.NewColumn{Name: "x", Type: "text"}); err != nil {
		t.Errorf("the next change: %v", err)
	}
}

// TestEndlessExpressions checks that index expressions that trap their cancellation end with the
// compaction or index build that calls them.
func TestEndlessExpressions(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("t", column("id"))

	p.sql(`create function public.slow(integer) returns integer language plpgsql immutable as $$ begin return $1; end $$`,
		`insert into public.t values (1)`, `create index slow on public.t (public.slow(id))`,
		`create or replace function public.slow(integer) returns integer language plpgsql immutable as $$ begin
			loop begin perform pg_catalog.pg_sleep(3600); exception when query_canceled then null; end; end loop;
		end $$`)

	var table uint32
	if _, err := fmt.Sscan(p.value(`'public.t'::regclass::oid`), &table); err != nil {
		t.Fatal(err)
	}

	for name, work := range map[string]func(context.Context) error{
		"compaction": func(ctx context.Context) error { return schema.CompactTable(ctx, p.owner, table) },
		"index": func(ctx context.Context) error {
			return schema.BuildIndex(ctx, p.owner, table, schema.NewIndex{
				Name:   "other",
				Method: "btree",
				Keys:   []schema.IndexKey{{Expression: "public.slow(id)"}},
			})
		},
	} {
		ctx, leave := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() { failed <- work(ctx) }()

		p.waitFor(`exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`)
		leave()

		if err := <-failed; err == nil {
			t.Errorf("%s: an endless expression returned without an error", name)
		}

		p.waitFor(
			`not exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`,
		)
	}
}

func TestColumnRaces(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	for round := range 5 {
		name := fmt.Sprintf("t_%d", round)
		errs := concurrently(10, func(int) error {
			_, err := schema.CreateTable(t.Context(), p.owner,
				schema.NewTable{Name: name, Columns: []schema.NewColumn{{Name: "id", Type: "serial", Primary: true}}})
			return err
		})
		if n := successes(t, errs, fault.Conflict); n != 1 {
			t.Errorf("equal tables created concurrently: got %d of 10, want 1", n)
		}

		errs = concurrently(10, func(int) error {
			_, err := p.add(name, schema.NewColumn{Name: "x", Type: "text", Unique: true})
			return err
		})
		if n := successes(t, errs, fault.Conflict); n != 1 {
			t.Errorf("equal columns created concurrently: got %d of 10, want 1", n)
		}

		// A concurrent rename makes the other calls succeed on the new name or fail with NotFound.
		errs = concurrently(10, func(i int) error {
			if i == 5 {
				_, err := schema.RenameTable(t.Context(), p.owner, p.uuid, name, name+"_new")
				return err
			}

			_, err := p.add(name, column("c"+strconv.Itoa(i)))
			return err
		})

		n := successes(t, errs, fault.NotFound)
		if got := len(p.columns(name + "_new")); got != n-1+2 {
			t.Errorf("got %d columns after %d successes, want all of those and the first two", got, n-1)
		}
	}
}

// TestCrossedReferences provokes deadlocks: two tables get references to each other concurrently.
func TestCrossedReferences(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	tables := []string{"a", "b"}
	for _, name := range tables {
		p.table(name, schema.NewColumn{Name: "id", Type: "serial", Primary: true})
	}

	for round := range 3 {
		errs := concurrently(4, func(i int) error {
			_, err := p.add(tables[i%2], schema.NewColumn{
				Name:            fmt.Sprintf("r_%d_%d", round, i),
				Type:            "integer",
				ReferenceTable:  tables[1-i%2],
				ReferenceColumn: "id",
			})
			return err
		})

		n := successes(t, errs, fault.Conflict)

		got := p.value(
			fmt.Sprintf(
				`select count(*) from pg_attribute where attname like 'r\_%d\_%%' and attrelid in ('public.a'::regclass, 'public.b'::regclass)`, round,
			),
		)
		if got != strconv.Itoa(n) {
			t.Errorf("got %s columns after %d successes", got, n)
		}
	}
}
