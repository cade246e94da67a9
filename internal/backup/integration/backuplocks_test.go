package integration_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pg"
)

// TestBackupOfLockedTable backs up a project with a locked table: the backup shows the lock, is
// retried, and finally fails.
func TestBackupOfLockedTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.CreateTable("orders")

	const waits = "the table public.orders, which another transaction has locked"

	lock := func() pgx.Tx {
		t.Helper()

		tx, err := a.ConnectProject().Begin(t.Context())
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

		waitUntil(t, "the backup is postponed", func() bool {
			r := a.Get("/backups/" + id).Want(200)
			return r.Get("status") == "pending" && r.Metadata("waitingFor") == waits
		})

		waitUntil(t, "its job is scheduled", func() bool {
			return apitest.Value[bool](a, `select exists (
				select from river.river_job where kind = 'backup' and state in ('available', 'scheduled') and args ->> 'project' = $1)`,
				a.Project)
		})
	}

	// The first backup completes when the lock is released.
	tx := lock()
	id := startBackup(t, a)
	postponed(id)
	a.Post("/backups", `{}`).Want(409).Code("backup_under_way")

	if anyStored(t, a, id) {
		t.Error("a partial dump is stored")
	}

	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	completeBackup(t, a, id)

	if waits := a.Get("/backups/" + id).Metadata("waitingFor"); waits != "" {
		t.Errorf("waits for %q", waits)
	}

	// The second backup exceeds the retry limit.
	tx = lock()
	id = startBackup(t, a)
	postponed(id)
	a.Exec(`update platform.backups set started_at = now() - interval '31 minutes' where uuid = $1`, id)
	retryBackups(a)
	waitForBackup(t, a, id, "completed", "failed").
		Content("error", "the table public.orders was locked by another transaction, for 30 minutes")

	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	waitForBackup(t, a, startBackup(t, a), "completed")
}

// TestDumpMessagesAreEnglish tests the language of PostgreSQL's messages to pg_dump, which are
// parsed.
func TestDumpMessagesAreEnglish(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)

	// an operator's possible setting
	set := `do $$ begin execute format('alter database %I set lc_messages = %L', current_database(), 'C.UTF-8'); end $$`
	if _, err := a.ConnectProject().Exec(t.Context(), set); err != nil {
		t.Fatal(err)
	}

	conn, err := a.Server.Projects().Open(uuid.MustParse(a.Project)).ConnectDump(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	if got, err := pg.Value[string](t.Context(), conn, `select current_setting('lc_messages')`); err != nil ||
		got != "C" {
		t.Errorf("got %q, %v, want C", got, err)
	}
}

// TestBackupOfSwappedTable replaces a table in the backup's snapshot by a view: the dump login
// executes nothing of it.
func TestBackupOfSwappedTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	execAsOwner(t, a,
		`create function public.spring() returns int language plpgsql as $f$ begin perform pg_notify('sprung', current_user::text); return 1; end $f$;
		grant execute on function public.spring() to public`)

	heard := a.ConnectProject()
	if _, err := heard.Exec(t.Context(), "listen sprung"); err != nil {
		t.Fatal(err)
	}

	// without rows to count, pg_dump is the first to read the table
	for _, partitioned := range []string{"", "partition by list (id)"} {
		execAsOwner(t, a, `create table public.bait (id int) `+partitioned)

		tx, err := a.ConnectProject().Begin(t.Context())
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

		id := startBackup(t, a)
		waitUntil(t, "the backup waits for the table", func() bool {
			waits, _ := a.Get("/backups/" + id).Want(200).Metadata("waitingFor").(string)
			return strings.HasPrefix(waits, "the table public.bait")
		})

		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}

		completeBackup(t, a, id)
		execAsOwner(t, a, `drop view public.bait`)
	}

	if _, err := heard.Exec(t.Context(), "notify sprung, 'the end'"); err != nil {
		t.Fatal(err)
	}

	if n, err := heard.WaitForNotification(t.Context()); err != nil || n.Payload != "the end" {
		t.Errorf("the view's function ran as %v (%v)", n, err)
	}
}
