package pgdump_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/pgtest"
)

const dumpEnd = "-- PostgreSQL database dump complete"

// scriptOf returns the script of pg_restore --verbose for the statements of entries.
func scriptOf(entries []pgdump.Entry) string {
	var b strings.Builder
	b.WriteString("--\n-- PostgreSQL database dump\n--\n\n\\restrict key\n\nSET no_such_setting = 0;\nSET check_function_bodies = off;\n" +
		"SELECT pg_catalog.set_config('search_path', '', false);\n\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "SET default_tablespace = '';\n\n--\n-- TOC entry %d (class 1259 OID 16390)\n-- Name: %s; Type: %s; Schema: %s; Owner: -\n--\n\n%s\n\n",
			e.ID, e.Tag, e.Desc, e.Namespace, e.Definition)
	}

	return b.String() + "\n--\n" + dumpEnd + "\n--\n\n\\unrestrict key\n"
}

// TestLoad executes entries of which some need a search path, some another entry that follows, and
// some fail for good.
func TestLoad(t *testing.T) {
	t.Parallel()

	session, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(context.WithoutCancel(t.Context()))

	conn := session.PgConn()
	if _, err := conn.Exec(t.Context(), "create schema if not exists extensions").ReadAll(); err != nil {
		t.Fatal(err)
	}

	all := []pgdump.Entry{
		{Desc: "FUNCTION", Tag: "inner(int)", Definition: "create function public.inner(int) returns int language sql immutable as 'select $1';"},
		{Desc: "FUNCTION", Tag: "outer(int)", Definition: "create function public.outer(int) returns int language plpgsql immutable as $$begin\n-- TOC entry 99 (class 1)\nreturn inner($1); end$$;"},
		{Desc: "FUNCTION", Tag: "dirty()", Definition: "create function public.dirty() returns bool language sql as $$ select set_config('role', 'pg_monitor', false) <> '' and set_config('check_function_bodies', 'on', false) <> '' $$;"},
		{Desc: "TABLE", Tag: "dirty", Definition: "create table public.dirty (n int check (public.dirty()));"},
		{Desc: "TABLE DATA", Tag: "dirty", Definition: "copy public.dirty (n) from stdin;\n1\n\\.\n"},
		{Desc: "FUNCTION", Tag: "later(int)", Definition: "create function public.later(int) returns bool language sql as 'select exists (select from z where n = $1)';"},
		{Desc: "TABLE", Tag: "a", Definition: "create table public.a (n int check (public.later(n)));"},
		{Desc: "TABLE", Tag: "z", Definition: "create table public.z (n int check (public.outer(n) = n), \"SET\" text);"},
		{Desc: "TABLE", Tag: "bad", Definition: "create table public.bad (n int check (n > 0));\ncomment on table public.nothing is '';"},
		{Desc: "TABLE DATA", Tag: "a", Definition: "copy public.a (n) from stdin;\n1\n\\.\n"},
		{Desc: "TABLE DATA", Tag: "bad", Definition: "copy public.bad (n) from stdin;\n1\n\\.\n"},
		{Desc: "TABLE DATA", Tag: "z", Definition: "copy public.z (n, \"SET\") from stdin;\n1\t-- TOC entry 2 (class 3\n\\.\n"},
		{Desc: "BLOBS", Tag: "long", Definition: "BEGIN;\n\n" + strings.Repeat("insert into public.z select 1, repeat('x', 1000);\n", 30_000) + "COMMIT;"},
		{Desc: "BLOBS", Tag: "long and bad", Definition: "BEGIN;\n\n" + strings.Repeat("insert into public.z select 1, repeat('x', 1000);\n", 30_000) + "select 1 / 0;\n\nCOMMIT;"},
		{Desc: "INDEX", Tag: "i", Definition: "CREATE INDEX i ON public.z USING btree (public.outer(n));"},
	}
	for i := range all {
		all[i].ID, all[i].Namespace = i+1, "public"
	}

	l := &pgdump.Loader{Conn: conn, WidePath: func(pgdump.Entry) string { return pgdump.SearchPath }}
	failed := func(entries []pgdump.Entry, retry bool) (names []string, left []pgdump.Entry) {
		t.Helper()

		failures, err := l.Load(t.Context(), strings.NewReader(scriptOf(entries)), entries, retry)
		if err != nil {
			t.Fatal(err)
		}

		for _, f := range failures {
			statement, _, _ := strings.Cut(f.Statement, "\n")
			names = append(names, f.Entry.Tag+": "+statement+": "+f.Cause.Message)
			left = append(left, f.Entry)
		}

		return names, left
	}

	bad := []string{
		`bad: create table public.bad (n int check (n > 0));: relation "public.nothing" does not exist`,
		`bad: copy public.bad (n) from stdin: relation "public.bad" does not exist`,
		`long and bad: insert into public.z select 1, repeat('x', 1000);: division by zero`,
	}

	names, left := failed(all, false)
	want := append([]string{bad[0], `a: copy public.a (n) from stdin: new row for relation "a" violates check constraint "a_n_check"`}, bad[1:]...)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}

	names, _ = failed(left, true)
	if diff := cmp.Diff(bad, names); diff != "" {
		t.Errorf("again (-want +got):\n%s", diff)
	}

	results, err := conn.Exec(t.Context(), `select (select count(*) from public.a) || ' ' || (select count(*) from public.z) || ' ' ||
		exists (select from pg_class where relname = 'i')`).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(results[0].Rows[0][0]); got != "1 30001 true" {
		t.Errorf("got rows and index %q", got)
	}

	for name, script := range map[string]string{"nothing": "",
		"cut off":         strings.TrimSuffix(scriptOf(all[6:7]), dumpEnd+"\n--\n\n\\unrestrict key\n"),
		"cut off in rows": scriptOf(all[7:12])[:len(scriptOf(all[7:12]))-200]} {
		if failures, err := l.Load(t.Context(), strings.NewReader(script), all, false); err == nil {
			t.Errorf("%s: got failures %v and no error", name, failures)
		}
	}
}
