package api_test

import (
	"fmt"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// waitForCompaction waits for the end of a table's compaction and returns it.
func waitForCompaction(t *testing.T, a *apitest.API, table string) *apitest.Reply {
	t.Helper()

	var r *apitest.Reply
	until(t, "the compaction has ended", func() bool {
		r = a.Get("/tables/" + table + "/compaction").Want(200)
		return r.Get("endedAt") != nil
	})

	return r
}

func TestCompaction(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.CreateTable("orders", "note text")
	a.CreateTable("lines", "note text")

	asOwner(t, a, `
		create function public.own(text) returns text language plpgsql immutable as 'begin return $1; end';
		create function public.fine(text) returns text language plpgsql immutable as 'begin return $1; end';
		insert into public.orders select n, repeat('x', 100) from generate_series(1, 5000) n; create index on public.orders (public.own(note)); delete from public.orders where id > 10;
		create or replace function public.own(text) returns text language plpgsql immutable as $$ begin
			if session_user not like '%\_owner' or current_user <> session_user then raise exception 'run by %', session_user; end if;
			perform pg_advisory_xact_lock_shared(42); return $1; end $$;
		insert into public.lines values (1, 'x'); create index on public.lines (public.fine(note));
		create or replace function public.fine(text) returns text language plpgsql immutable as $$ begin raise exception 'the secret %', $1; end $$;
		create table public.parts (id int) partition by range (id); create table public.part partition of public.parts for values from (1) to (100000);
		insert into public.parts select generate_series(1, 10000); delete from public.parts where id > 10`)

	execute(t, a, `create table public.theirs (id int)`)
	size := func(table string) int { return query[int](t, a, "select pg_relation_size('"+table+"')") }

	a.Get("/tables/orders/compaction").Want(404)
	a.Post("/tables/orders/compaction", "").Want(201).Content("status", "waiting").Content("error", "").
		Content("endedAt", nil)
	waitForCompaction(t, a, "orders").Content("status", "completed").Content("progress", nil).Content("error", "")

	if got := size("orders"); got != 8192 {
		t.Errorf("10 rows take %d bytes", got)
	}

	for table, reason := range map[string]string{
		"lines":  "an index of the table can't be rebuilt",
		"theirs": "the object belongs to the platform or to an extension",
	} {
		a.Post("/tables/"+table+"/compaction", "").Want(201)
		waitForCompaction(t, a, table).Content("status", "failed").Content("error", reason)
	}

	if got := query[string](t, a, "select string_agg(note, ' ') from lines"); got != "x" {
		t.Errorf("got rows %q after a failed compaction", got)
	}

	a.Post("/tables/parts/compaction", "").Want(201)
	waitForCompaction(t, a, "parts").Content("status", "completed")

	if got := size("part"); got != 8192 {
		t.Errorf("10 rows take %d bytes", got)
	}

	// Only one compaction per table runs at a time. While it runs, here blocked by an index
	// expression, it reports progress.
	holder := a.ConnectProject()
	if _, err := holder.Exec(t.Context(), "select pg_advisory_lock(42)"); err != nil {
		t.Fatal(err)
	}

	wantCounts(t, concurrently(5, func(int) *apitest.Reply { return a.Post("/tables/orders/compaction", "") }),
		map[int]int{201: 1, 409: 4})

	a.Post("/tables/orders/compaction", "").Want(409).Code("busy")

	until(t, "all pages are read", func() bool {
		r := a.Get("/tables/orders/compaction").Want(200)
		return r.Get("status") == "running" && fmt.Sprint(r.Get("progress")) == "100"
	})

	if _, err := holder.Exec(t.Context(), "select pg_advisory_unlock(42)"); err != nil {
		t.Fatal(err)
	}

	waitForCompaction(t, a, "orders").Content("status", "completed")
	a.Post("/tables/missing/compaction", "").Want(404)
	a.Post("/tables/auth.users/compaction", "").Want(400)
	a.Get("/tables/missing/compaction").Want(404)
	a.Get("/tables/auth.users/compaction").Want(400)
}

// TestCompactionOldSnapshot checks that a compaction waits while an old snapshot would make it
// useless, and reports this.
func TestCompactionOldSnapshot(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text")
	asOwner(t, a, `insert into public.orders select n, repeat('x', 100) from generate_series(1, 5000) n`)

	reader := a.ConnectProject()
	read := func(sql string) {
		t.Helper()

		if _, err := reader.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	read("begin isolation level repeatable read read only; select")
	asOwner(t, a, `delete from public.orders where id > 10`)

	file := func() uint32 { return query[uint32](t, a, "select pg_relation_filenode('orders')") }
	before := file()

	a.Post("/tables/orders/compaction", "").Want(201)

	var r *apitest.Reply
	until(t, "an attempt has ended", func() bool {
		r = a.Get("/tables/orders/compaction").Want(200)
		return r.Get("error") != "" || r.Get("endedAt") != nil
	})

	r.Content("endedAt", nil).
		Content("error", "a transaction that began before the compaction can still see deleted rows")

	if file() != before {
		t.Error("the table was rewritten in vain")
	}

	read("rollback")
	waitForCompaction(t, a, "orders").Content("status", "completed").Content("error", "")

	if got := query[int](t, a, "select pg_relation_size('orders')"); got != 8192 {
		t.Errorf("10 rows take %d bytes", got)
	}
}
