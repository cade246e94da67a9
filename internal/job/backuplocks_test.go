package job_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/api/apitest"
	"socle/internal/pg"
)

// TestBackupOfLockedTable backs a project up of which a table is locked: it says so, is begun again later, and fails in
// the end.
func TestBackupOfLockedTable(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.Unproven()
	a.CreateTable("orders")

	const waits = "the table public.orders, which another transaction has locked"

	lock := func() pgx.Tx {
		t.Helper()

		tx, err := a.ProjectDatabase().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if _, err := tx.Exec(t.Context(), `lock table public.orders`); err != nil {
			t.Fatal(err)
		}

		return tx
	}

	postponed := func(id string) {
		t.Helper()

		until(t, "it is to be tried again", func() bool {
			r := a.Get("/backups/" + id).Want(200)
			return r.Get("status") == "pending" && r.Metadata("waitingFor") == waits
		})

		until(t, "its job waits", func() bool {
			return apitest.Value[bool](a, `select exists (
				select from river.river_job where kind = 'backup' and state in ('available', 'scheduled'))`)
		})
	}

	// The first one gets to its end when the lock is gone.
	tx := lock()
	id := back(t, a)
	postponed(id)
	a.Post("/backups", `{}`).Want(409).Code("backup_under_way")

	if kept(t, a, id) {
		t.Error("a part of the dump is kept")
	}

	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	completed(t, a, id)

	if waits := a.Get("/backups/" + id).Metadata("waitingFor"); waits != "" {
		t.Errorf("it waits for %q", waits)
	}

	// The second one has been tried for long enough.
	tx = lock()
	id = back(t, a)
	postponed(id)
	a.Exec(`update platform.backups set started_at = now() - interval '31 minutes' where uuid = $1`, id)
	retryBackups(a)
	await(t, a, id, "completed", "failed").
		Content("error", "the table public.orders was locked by another transaction, for 30 minutes")

	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	await(t, a, back(t, a), "completed")
}

// TestDumpIsToldInEnglish asks in which language PostgreSQL speaks to pg_dump, whose words are read.
func TestDumpIsToldInEnglish(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)

	// as an operator may have it
	set := `do $$ begin execute format('alter database %I set lc_messages = %L', current_database(), 'C.UTF-8'); end $$`
	if _, err := a.ProjectDatabase().Exec(t.Context(), set); err != nil {
		t.Fatal(err)
	}

	conn, err := a.Server.Projects().ConnectDump(t.Context(), uuid.MustParse(a.Project))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	if got, err := pg.Value[string](t.Context(), conn, `select current_setting('lc_messages')`); err != nil ||
		got != "C" {
		t.Errorf("got %q, %v, want C", got, err)
	}
}

// TestBackupOfSwappedTable puts a view in the place of a table that the backup's snapshot has shown: the login that reads everything runs nothing of it.
func TestBackupOfSwappedTable(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.Unproven()
	asOwner(t, a,
		`create function public.spring() returns int language plpgsql as $f$ begin perform pg_notify('sprung', current_user::text); return 1; end $f$;
		grant execute on function public.spring() to public`)

	heard := a.ProjectDatabase()
	if _, err := heard.Exec(t.Context(), "listen sprung"); err != nil {
		t.Fatal(err)
	}

	// where there is nothing to count, pg_dump is the first to look
	for _, partitioned := range []string{"", "partition by list (id)"} {
		asOwner(t, a, `create table public.bait (id int) `+partitioned)

		tx, err := a.ProjectDatabase().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if _, err := tx.Exec(t.Context(), `drop table public.bait`); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(),
			`create view public.bait as select public.spring() as id; alter view public.bait owner to `+
				pgx.Identifier{query(t, a, `select current_database() || '_owner'`)}.Sanitize()); err != nil {
			t.Fatal(err)
		}

		id := back(t, a)
		until(t, "the backup waits for the table", func() bool {
			waits, _ := a.Get("/backups/" + id).Want(200).Metadata("waitingFor").(string)
			return strings.HasPrefix(waits, "the table public.bait")
		})

		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}

		completed(t, a, id)
		asOwner(t, a, `drop view public.bait`)
	}

	if _, err := heard.Exec(t.Context(), "notify sprung, 'the end'"); err != nil {
		t.Fatal(err)
	}

	if n, err := heard.WaitForNotification(t.Context()); err != nil || n.Payload != "the end" {
		t.Errorf("the view's function ran as %v, %v", n, err)
	}
}
