package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestRowsOfAFullDatabase checks that rows of a full database can be read and deleted, but not
// inserted or updated, until there is space again.
func TestRowsOfAFullDatabase(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	secret := "apikey: " + s.secret

	own := s.Server.Projects().Open(uuid.MustParse(s.Project))
	if _, err := own.Owner().Exec(t.Context(), `
		create sequence public.numbers;
		create function public.add() returns void language sql as 'insert into public.titles (id) values (20001)';
		create function public.sneak() returns void language plpgsql as $$ begin
			perform set_config('transaction_read_only', 'off', true); insert into public.titles (id) values (78); end $$;
		create function public.hush() returns text language plpgsql as $$ begin
			insert into public.titles (id) values (79); return 'made';
			exception when others then return sqlstate; end $$;
		create function public.hold() returns void language sql as 'create temporary table held (id int)';
		create function public.next() returns bigint language sql as $$ select nextval('public.numbers') $$;
		create function public.total() returns bigint language sql as 'select count(*) from public.titles';
		create function public.total_stable() returns bigint language sql stable as 'select count(*) from public.titles';
		insert into public.titles select n, repeat('x', 100) from generate_series(1, 10000) n;
		grant all on all tables in schema public to service_role;
		grant all on all sequences in schema public to service_role;
		grant execute on all functions in schema public to service_role`); err != nil {
		t.Fatal(err)
	}

	limit := func(most int64) {
		s.Exec(`update platform.projects set max_database_bytes = $1 where uuid = $2`, most, s.Project)
		s.measure()
	}

	s.want(204, "", "POST", "/rpc/add", "", secret)
	limit(s.measure() - 1)

	const full = `{"code":"53100","details":null,"hint":"Rows can be read and deleted. ` +
		`To make room, delete rows and compact their table, delete a table, or have the quota raised.","message":"the database has reached its quota"}`
	s.want(503, full, "POST", "/titles", `{"id": 20000}`, secret)
	s.want(503, full, "POST", "/titles", `[{"id": 1, "title": "x"}]`, secret, "Prefer: resolution=merge-duplicates")
	s.want(503, full, "PATCH", "/titles?id=eq.1", `{"title": "y"}`, secret)
	s.want(503, full, "PUT", "/titles?id=eq.1", `{"id": 1, "title": "y", "owner": null}`, secret)

	for _, name := range []string{"add", "hold", "next"} {
		s.want(503, full, "POST", "/rpc/"+name, "{}", secret)
	}

	s.want(503, full, "POST", "/rpc/add", "{}", secret, "Prefer: count=exact, return=minimal")

	if text := s.want(500, "", "POST", "/rpc/sneak", "{}", secret); !strings.Contains(text,
		"transaction read-write mode must be set before any query") {
		t.Errorf("a function that lifts the quota: got %s", text)
	}

	s.want(200, `"25006"`, "POST", "/rpc/hush", "{}", secret)
	s.want(200, "10001", "POST", "/rpc/total", "{}", secret)
	s.want(200, "10001", "POST", "/rpc/total_stable", "{}", secret)
	s.want(200, "10001", "GET", "/rpc/total", "", secret)
	s.want(200, `[{"id":1}]`, "GET", "/titles?select=id&id=eq.1", "", secret)
	s.want(405, "", "GET", "/rpc/add", "", secret)
	s.want(204, "", "DELETE", "/titles?id=gt.10", "", secret)
	s.want(200, `[{"count":10}]`, "GET", "/titles?select=count", "", secret)
	s.want(503, full, "POST", "/titles", `{"id": 20000}`, secret) // deleted rows still occupy space

	s.Post("/tables/titles/compaction", "").Want(201)
	eventually(t, "the table is compacted", func() bool {
		return s.Get("/tables/titles/compaction").Want(200).Get("status") == "completed"
	})

	s.want(201, "", "POST", "/titles", `{"id": 20000}`, secret)
	s.want(204, "", "POST", "/rpc/add", "", secret) // 20001 was deleted
	s.want(204, "", "PATCH", "/titles?id=eq.1", `{"title": "y"}`, secret)

	// unlogged and temporary tables and large objects count too
	before := s.measure()
	conn := s.ConnectProject()
	for _, sql := range []string{"create unlogged table quick as select n, repeat('x', 100) from generate_series(1, 10000) n",
		"create temporary table passing as select n, repeat('x', 100) from generate_series(1, 10000) n",
		"select lo_from_bytea(0, decode(string_agg(md5(n::text), ''), 'hex')) from generate_series(1, 100000) n"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}

		if after := s.measure(); after < before+100_000 {
			t.Errorf("%s: database size before %d, after %d", sql, before, after)
		} else {
			before = after
		}
	}

	// a database far over its quota rejects deletions too, since they can make it grow
	limit(1)
	s.want(204, "", "DELETE", "/titles?id=eq.1", "", secret)

	junk := func(program string) {
		t.Helper()

		if _, err := own.Trusted().Exec(t.Context(),
			`do $$ begin execute format('copy (select) to program ''`+program+
				` base/%s/t0_1''', (select oid from pg_database where datname = current_database())); end $$`); err !=
			nil {
			t.Fatal(err)
		}

		s.measure()
	}

	junk("truncate -s 2G")
	s.want(503, full, "DELETE", "/titles?id=eq.2", "", secret)
	s.want(503, full, "POST", "/rpc/total", "{}", secret)
	s.want(200, "11", "POST", "/rpc/total_stable", "{}", secret)
	junk("rm")
	s.want(204, "", "DELETE", "/titles?id=eq.2", "", secret)
}

// measure runs the periodic measurement of sizes, and returns the size of the project's database.
func (s titlesProject) measure() int64 {
	s.t.Helper()

	l := s.Server.Services().Lifecycle
	if err := l.MeasureActive(s.t.Context(), time.Time{}); err != nil {
		s.t.Fatal(err)
	}

	size, err := l.GetSize(s.t.Context(), uuid.MustParse(s.Project))
	if err != nil {
		s.t.Fatal(err)
	}

	return size.DatabaseBytes
}
