package schema_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/schema"
)

func TestTableUUID(t *testing.T) {
	t.Parallel()

	project := uuid.MustParse("018f2f6e-0000-7000-8000-000000000001")
	got := schema.TableUUID(project, 16385)
	if want := uuid.NewSHA1(project, []byte("16385")); got != want || got.Version() != 5 {
		t.Errorf("UUID of the table: got %s of version %d, want %s of version 5", got, got.Version(), want)
	}
	if schema.TableUUID(project, 16386) == got || schema.TableUUID(uuid.New(), 16385) == got {
		t.Error("another table or project got the same UUID")
	}
}

func TestListTables(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	list := func(page pg.Page) ([]string, int64) {
		t.Helper()

		tables, total, err := schema.ListTables(t.Context(), p.platform, page, "")
		if err != nil {
			t.Fatal(err)
		}

		names := make([]string, len(tables))
		for i, table := range tables {
			names[i] = table.FullName()
		}

		return names, total
	}
	if names, total := list(pg.Page{Number: 1, Limit: 20, Sort: "name"}); len(names) != 0 ||
		names == nil || total != 0 {
		t.Errorf("empty project: got %v of %d", names, total)
	}

	p.sql(`create schema app`, `create table public.b (id int primary key)`, `create table app.a (id int)`,
		`create table public.c (id int) partition by range (id)`,
		`create table public.c1 partition of public.c for values from (0) to (10)`, `create view public.v as select 1`,
		`create table public."A" (id int)`,
		`insert into public.b select generate_series(1, 500)`, `analyze public.b`)

	for _, test := range []struct {
		page pg.Page
		want string
	}{
		{pg.Page{Number: 1, Limit: 20, Sort: "name"}, "public.A app.a public.b public.c public.c1"},
		{pg.Page{Number: 1, Limit: 20, Sort: "name", Descending: true}, "public.c1 public.c public.b app.a public.A"},
		{pg.Page{Number: 1, Limit: 20, Sort: "id"}, "public.b app.a public.c public.c1 public.A"},
		{pg.Page{Number: 1, Limit: 20, Sort: "schema"}, "app.a public.b public.c public.c1 public.A"},
		{pg.Page{Number: 1, Limit: 1, Sort: "estimatedRows", Descending: true}, "public.b"},
		{pg.Page{Number: 2, Limit: 2, Sort: "name"}, "public.b public.c"},
		{pg.Page{Number: 3, Limit: 2, Sort: "name"}, "public.c1"},
		{pg.Page{Number: 9, Limit: 2, Sort: "name"}, ""},
		{pg.Page{Number: 1 << 31, Limit: 100, Sort: "name"}, ""},
	} {
		names, total := list(test.page)
		if got := strings.Join(names, " "); got != test.want || total != 5 {
			t.Errorf("page %+v: got %q of %d, want %q of 5", test.page, got, total, test.want)
		}
	}
}

func TestGetTable(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create table public.orders (id int primary key, note text)`)

	fresh, err := schema.GetTable(t.Context(), p.platform, p.uuid, "orders")
	if err != nil || fresh.EstimatedRows != 0 || fresh.TotalSize != "16 kB" {
		t.Errorf("new table: got %+v (%v), want 0 rows and 16 kB", fresh, err)
	}

	p.sql(`insert into public.orders select n, 'x' from generate_series(1, 1000) n`, `analyze public.orders`)

	id, err := strconv.ParseUint(p.value(`'public.orders'::regclass::oid`), 10, 32)
	if err != nil {
		t.Fatal(err)
	}

	want := schema.Table{ID: uint32(id), Name: "orders", Schema: "public", EstimatedRows: 1000,
		TotalSize: p.value(`pg_size_pretty(pg_total_relation_size('public.orders'))`)}
	tableUUID := schema.TableUUID(p.uuid, want.ID).String()
	for _, ref := range []string{
		"orders", "public.orders", strconv.Itoa(int(want.ID)), tableUUID, strings.ToUpper(tableUUID),
	} {
		got, err := schema.GetTable(t.Context(), p.platform, p.uuid, ref)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("table %s: %v\n%s", ref, err, diff)
		}
	}

	for _, ref := range []string{"order", "Orders", "app.orders", "1", "4294967295", uuid.NewString(),
		schema.TableUUID(uuid.New(), want.ID).String(), p.value(`'pg_catalog.pg_class'::regclass::oid`),
		p.value(`'auth.users'::regclass::oid`), p.value(`'public.orders_pkey'::regclass::oid`), "orders_pkey"} {
		_, err := schema.GetTable(t.Context(), p.platform, p.uuid, ref)
		wantFault(t, "table "+ref, err, fault.NotFound, "", "not_found")
	}

	for _, ref := range badTableNames {
		_, err := schema.GetTable(t.Context(), p.platform, p.uuid, ref)
		wantFault(t, "table "+ref, err, fault.Invalid, "table", "invalid_value")
	}
}

// badTableNames are no valid names of user tables in a path.
var badTableNames = []string{"", " ", ".", "a.", ".a", "a.b.c", "db.public.orders", "...", `"orders"`, "orders'",
	"orders; drop table orders", "orders--", "or ders", "órders", "pg_catalog.pg_class", "pg_toast.x",
	"information_schema.tables", "auth.users", "storage.files", "forms.forms", "realtime.x", "socle.migrations",
	"orders\x00", "a%2Fb", "../orders", "a/b", "-1", "1.5", "1e3", "4294967296", "99999999999999999999", "0x10", "1a",
	"$1", strings.Repeat("a", 64), strings.Repeat("a", 10_000), "018f2f6e-0000-7000-8000-00000000000",
	"{018f2f6e-0000-7000-8000-000000000001}", "018f2f6e000070008000000000000001", "orders\n"}

// TestReadLockedTable checks that reading does not wait for held or requested table locks.
func TestReadLockedTable(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("orders", schema.NewColumn{Name: "id", Type: "integer", Primary: true})
	p.sql(`insert into public.orders select generate_series(1, 1000)`, `vacuum analyze public.orders`)

	want, err := schema.GetTable(t.Context(), p.platform, p.uuid, "orders")
	if err != nil {
		t.Fatal(err)
	}

	tx, err := p.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())

	if _, err := tx.Exec(t.Context(), `lock table public.orders in access exclusive mode`); err != nil {
		t.Fatal(err)
	}

	got, err := schema.GetTable(t.Context(), p.platform, p.uuid, "orders")
	if err != nil || got.ID != want.ID || got.EstimatedRows != 1000 || got.TotalSize == "0 bytes" {
		t.Errorf("locked table: got %+v (%v), want about %+v", got, err, want)
	}

	if tables, total, err := schema.ListTables(t.Context(), p.platform, pg.Page{
		Number: 1,
		Limit:  20,
		Sort:   "name",
	}, ""); err != nil || total != 1 || len(tables) != 1 {
		t.Errorf("list with a locked table: got %v of %d, %v", tables, total, err)
	}
	if columns := p.columns("orders"); len(columns) != 1 {
		t.Errorf("columns of a locked table: got %v", columns)
	}

	_, err = schema.RenameTable(t.Context(), p.owner, p.uuid, "orders", "bills")
	wantFault(t, "rename a locked table", err, fault.Conflict, "", "busy")
}

func TestRenameTable(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema app`, `create table app.orders (id int)`, `create table public.taken (id int)`,
		`create view public.view as select 1`, `create type public.mood as enum ('a')`)

	created := p.table("orders", column("id"))
	p.sql(`insert into public.orders values (7)`)

	rename := func(ref, name, want string) {
		t.Helper()

		got, err := schema.RenameTable(t.Context(), p.owner, p.uuid, ref, name)
		if err != nil || got.FullName() != want {
			t.Errorf("rename %s to %s: got %+v, %v, want %s", ref, name, got, err, want)
		}
	}

	rename("orders", "bills", "public.bills")
	rename(strconv.Itoa(int(created.ID)), "Bills_2", "public.Bills_2")
	rename(schema.TableUUID(p.uuid, created.ID).String(), strings.Repeat("b", 63), "public."+strings.Repeat("b", 63))
	rename("public."+strings.Repeat("b", 63), "select", "public.select")
	rename("select", "select", "public.select")
	rename("app.orders", "taken", "app.taken")

	if got := p.value(`select id from public."select"`); got != "7" {
		t.Errorf("row of the renamed table: got %s, want 7", got)
	}

	before := p.snapshot()

	for _, name := range append([]string{
		"", "a.b", "a b", "9a", "a-b", "a\\b", "a$$b", "x/*", "é", strings.Repeat("é", 32), "a\x00",
	}, badTableNames[5:]...) {
		_, err := schema.RenameTable(t.Context(), p.owner, p.uuid, "select", name)
		code := "invalid_format"
		if name == "" {
			code = "required"
		}

		wantFault(t, "rename to "+name, err, fault.Unprocessable, "name", code)
	}

	for _, name := range []string{"taken", "view", "mood"} {
		_, err := schema.RenameTable(t.Context(), p.owner, p.uuid, "select", name)
		wantFault(t, "rename to "+name, err, fault.Conflict, "name", "already_exists")
	}

	_, err := schema.RenameTable(t.Context(), p.owner, p.uuid, "nothing", "a b")
	wantFault(t, "rename nothing", err, fault.NotFound, "", "not_found")
	_, err = schema.RenameTable(t.Context(), p.owner, p.uuid, "auth.users", "x")
	wantFault(t, "rename the platform's", err, fault.Invalid, "table", "invalid_value")
	p.run(p.platform, `create table public.foreigner (id int)`)
	_, err = schema.RenameTable(t.Context(), p.owner, p.uuid, "foreigner", "x")
	wantFault(t, "rename what is not the owner's", err, fault.Unprocessable, "", "not_owned")
	p.run(p.platform, `drop table public.foreigner`)

	if after := p.snapshot(); after != before {
		t.Errorf("rejected renames changed the catalog: got\n%s\nwant\n%s", after, before)
	}
}

// TestOddNames checks that tables with names that only SQL can create are listed, described and
// renamed.
func TestOddNames(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("canary", column("id"))
	names := []string{
		`x"; drop table public.canary; --`, "a\n\\! id", "-rf", "dbname=x", "a.b", "it's", "$$", "ÜÖ", "%I", "select",
	}
	for _, name := range names {
		p.sql("create schema "+pg.Quote(name),
			"create table "+pg.Quote(name, name)+" ("+pg.Quote(name)+" integer primary key, r integer references "+
				pg.Quote(name, name)+")")
	}

	tables, total, err := schema.ListTables(t.Context(), p.platform, pg.Page{Number: 1, Limit: 100, Sort: "id"}, "")
	if err != nil || int(total) != len(names)+1 {
		t.Fatalf("got %d tables (%v), want %d", total, err, len(names)+1)
	}

	for i, table := range tables[1:] {
		if table.Name != names[i] || table.Schema != names[i] {
			t.Errorf("got table %+v, want the name and schema %q", table, names[i])
		}

		id := strconv.Itoa(int(table.ID))
		full := names[i] + "." + names[i]
		want := []schema.Column{{Name: names[i], Type: "integer", Position: 1, NotNull: true,
			Unique: true, Primary: true},
			{Name: "r", Type: "integer", Position: 2, Foreign: true, ReferenceTable: &full, ReferenceColumn: &names[i]}}
		if diff := cmp.Diff(want, p.columns(id)); diff != "" {
			t.Errorf("columns of %q:\n%s", full, diff)
		}

		if _, err := p.add(id, column("later")); err != nil {
			t.Errorf("add a column to %q: %v", full, err)
		}

		if renamed, err := schema.RenameTable(t.Context(), p.owner, p.uuid, id, "fine"); err != nil ||
			renamed.ID != table.ID || renamed.Name != "fine" {
			t.Errorf("rename %q: got %+v, %v", full, renamed, err)
		}
	}

	if len(p.columns("canary")) != 1 {
		t.Error("the canary table changed")
	}
}

// TestRenameRaces checks that each successful rename was effective in turn, and that exactly one
// name remains.
func TestRenameRaces(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	for round := range 5 {
		name := fmt.Sprintf("start_%d", round)
		created := p.table(name, column("id"))
		won := ""

		errs := concurrently(10, func(i int) error {
			renamed, err := schema.RenameTable(t.Context(), p.owner, p.uuid, name, fmt.Sprintf("name_%d_%d", round, i))
			if err == nil {
				won = renamed.Name // a single success, so a single writer
			}

			return err
		})
		if n := successes(t, errs, fault.NotFound); n != 1 {
			t.Errorf("concurrent renames by name: got %d of 10 successes, want 1", n)
		}

		id := strconv.Itoa(int(created.ID))
		if got, err := schema.GetTable(t.Context(), p.platform, p.uuid, id); err != nil || got.Name != won {
			t.Errorf("got table %+v (%v), want the name %s", got, err, won)
		}

		errs = concurrently(10, func(i int) error {
			_, err := schema.RenameTable(t.Context(), p.owner, p.uuid, id, fmt.Sprintf("again_%d_%d", round, i))
			return err
		})
		if n := successes(t, errs); n != 10 {
			t.Errorf("concurrent renames by ID: got %d of 10 successes, want 10", n)
		}

		first, second := p.table(fmt.Sprintf("first_%d", round),
			column("id")), p.table(fmt.Sprintf("second_%d", round), column("id"))

		errs = concurrently(10, func(i int) error {
			_, err := schema.RenameTable(t.Context(), p.owner, p.uuid, []schema.Table{first, second}[i%2].FullName(),
				fmt.Sprintf("target_%d", round))
			return err
		})
		if n := successes(t, errs, fault.Conflict, fault.NotFound); n != 1 {
			t.Errorf("concurrent renames to one name: got %d successes, want 1", n)
		}
	}
}
