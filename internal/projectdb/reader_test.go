package projectdb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// openReader opens a read-only session and returns it as a connection.
func openReader(t *testing.T, p *projectdb.Project) *pgx.Conn {
	t.Helper()

	s, err := p.OpenSession(t.Context(), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	return projectdbtest.Connect(t, p, pgcluster.Reader) // as the session, but with pgx
}

// TestReader checks that a read-only session reads all tables of the owner, of later ones too, and
// that its login can write to none and reads nothing of the platform.
func TestReader(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 4)
	p := projectdbtest.NewIn(t, r)
	developer := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, developer, `
		set search_path = public;
		create table books (id serial, title text); insert into books (title) values ('Emma');
		alter table books enable row level security, force row level security;
		create view titles as select title from books;
		create materialized view kept as select 1 as n;
		create schema "Other one"; create table "Other one".more (n int);
		create function shout() returns text language sql security definer as $$ select 'x' $$`)

	conn := openReader(t, p)
	pgtest.Exec(t, developer, `create table later (n int)`)

	for _, sql := range []string{
		`select * from public.titles, public.kept, "Other one".more, public.later`, `copy public.books to stdout`,
		`select last_value from public.books_id_seq`,
	} {
		pgtest.Exec(t, conn, sql)
	}

	if n := pgtest.Value[int](t, conn, `select count(*)::int from public.books`); n != 1 {
		t.Errorf("got %d books past row level security, want 1", n)
	}

	pgtest.Exec(t, conn, `set default_transaction_read_only = off`)

	for _, sql := range []string{
		`insert into public.books values (2, 'Ulysses')`, `select nextval('public.books_id_seq')`,
		`update public.books set title = ''`, `delete from public.books`,
		`truncate public.books`, `drop table public.books`, `create table public.mine ()`,
		`create temporary table mine ()`,
		`create schema mine`, `refresh materialized view public.kept`, `select public.shout()`,
		`select * from socle.audit`, `select * from socle.audit_pending`,
		`select * from socle.queries`, `select * from storage.files`,
		`select * from forms.forms`, `set role ` + r.OwnerLogin(p.UUID), `set role service_role`,
		`alter role ` + r.OwnerLogin(p.UUID) + ` reset all`,
		`copy public.books to program 'true'`,
	} {
		if got := pgtest.State(t, conn, sql); got != "42501" {
			t.Errorf("%s: got state %q, want insufficient privilege", sql, got)
		}
	}

	other := projectdbtest.NewIn(t, r)
	config := r.Cluster(p.UUID).Config(p.UUID, pgcluster.Reader)
	config.Database = r.Database(other.UUID)
	if _, err := pgx.ConnectConfig(t.Context(), config); pg.State(err) != "42501" {
		t.Errorf("got %v in another project's database", err)
	}

	pgtest.Exec(t, developer, `create schema newer; create table newer.more (n int); revoke select on books from socle_reader`)
	pgtest.Exec(t, openReader(t, p), `select * from newer.more, public.books`)
}

// TestReaderOfAnotherPassword checks that a reader that changed its own login is reset.
func TestReaderOfAnotherPassword(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 4)
	p := projectdbtest.NewIn(t, r)
	pgtest.Exec(t, openReader(t, p), `alter role current_user password 'mine'; alter role current_user set work_mem = '64kB'`)

	s, err := p.OpenSession(t.Context(), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()

	if got := pgtest.Value[string](t, projectdbtest.Connect(t, p, pgcluster.Reader), `show work_mem`); got == "64kB" {
		t.Errorf("got work_mem %s, want the server's", got)
	}

	if err := p.Cluster().ResetLogins(context.Background(), p.UUID); err != nil {
		t.Error(err)
	}
}

// TestSessionsAreBounded checks the bound of a server, and that a session that ended makes room.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 6) // of which 3 are for sessions
	p, other := projectdbtest.NewIn(t, r), projectdbtest.NewIn(t, r)

	var open []*projectdb.Session
	for _, in := range []*projectdb.Project{p, p, other} {
		s, err := in.OpenSession(t.Context(), false, nil)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}

	if _, err := other.OpenSession(t.Context(), false, nil); err == nil {
		t.Error("the server has no bound")
	}

	open[0].Close()
	s, err := other.OpenSession(t.Context(), false, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, s := range append(open[1:], s) {
		s.Close()
	}

	pgtest.Eventually(t, "their slots are free", func() bool { return slotsInUse(r) == 0 })
}
