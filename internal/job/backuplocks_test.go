package job_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/api/apitest"
	"socle/internal/config"
	"socle/internal/pg"
)

// TestBackupOfLockedTable backs a project up of which a table is locked: it says so, is begun again when pg_dump gives up, and fails in the end.
func TestBackupOfLockedTable(t *testing.T) {
	t.Parallel()
	enough := filepath.Join(t.TempDir(), "enough")
	dir := programs(t, `if [ -e `+enough+` ]; then while [ ! -s `+enough+` ]; do sleep 0.05; done; rm `+enough+`
		echo "pg_dump: error: query failed: ERROR:  canceling statement due to statement timeout" >&2; exit 1; fi; exec "$real" "$@"`)
	a := apitest.New(t, func(c *config.Config) { c.PostgresBin = dir })
	a.Unproven()
	a.CreateTable("orders")
	tx, err := a.ProjectDatabase().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `lock table public.orders`); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(enough, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is := func(id, status, waits string) func() bool {
		return func() bool {
			r := a.Get("/backups/" + id).Want(200)
			return r.Get("status") == status && r.Metadata("waitingFor") == waits
		}
	}
	again := func() { // what is due in some seconds is due now
		a.Exec(`update river.river_job set state = 'available', scheduled_at = now() where kind = 'backup' and state in ('available', 'scheduled')`)
	}
	scheduled := func() bool {
		conn, err := pgx.Connect(t.Context(), string(a.Config.DatabaseURL))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		is, err := pg.Value[bool](t.Context(), conn, `select exists (select from river.river_job where kind = 'backup' and state in ('available', 'scheduled'))`)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	const waits = "the table public.orders, which another transaction has locked"

	// The first one gets to its end when the lock is gone.
	write("")
	id := back(t, a)
	until(t, "it says what it waits for", is(id, "running", waits))
	write("now")
	until(t, "it is to be tried again", is(id, "pending", waits))
	until(t, "its job waits", scheduled)
	a.Post("/backups", `{}`).Want(409).Code("backup_under_way")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	again()
	await(t, a, id, "completed", "failed").Content("status", "completed")
	if waits := a.Get("/backups/" + id).Metadata("waitingFor"); waits != "" {
		t.Errorf("it waits for %q", waits)
	}

	// The second one has been tried for long enough.
	if tx, err = a.ProjectDatabase().Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `lock table public.orders`); err != nil {
		t.Fatal(err)
	}
	write("")
	id = back(t, a)
	until(t, "it says what it waits for", is(id, "running", waits))
	a.Exec(`update platform.backups set started_at = now() - interval '31 minutes' where uuid = $1`, id)
	write("now")
	await(t, a, id, "completed", "failed").Content("error", "the table public.orders was locked by another transaction, for 30 minutes")
	if kept(t, a, id) {
		t.Error("a part of the dump is kept")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, a, back(t, a), "completed")
}

// TestDumpIsToldInEnglish asks in which language PostgreSQL speaks to pg_dump, whose words are read.
func TestDumpIsToldInEnglish(t *testing.T) {
	t.Parallel()
	a := apitest.New(t)
	set := `do $$ begin execute format('alter database %I set lc_messages = %L', current_database(), 'C.UTF-8'); end $$` // as an operator may have it
	if _, err := a.ProjectDatabase().Exec(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	conn, err := a.Server.Projects().ConnectDump(t.Context(), uuid.MustParse(a.Project))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if got, err := pg.Value[string](t.Context(), conn, `select current_setting('lc_messages')`); err != nil || got != "C" {
		t.Errorf("got %q, %v, want C", got, err)
	}
}

// TestBackupOfSwappedTable puts a view in the place of a table that the backup's snapshot has shown: the login that reads everything runs nothing of it.
func TestBackupOfSwappedTable(t *testing.T) {
	t.Parallel()
	a := apitest.New(t)
	a.Unproven()
	asOwner(t, a, `create function public.spring() returns int language plpgsql as $f$ begin perform pg_notify('sprung', current_user::text); return 1; end $f$;
		grant execute on function public.spring() to public`)
	heard := a.ProjectDatabase()
	if _, err := heard.Exec(t.Context(), "listen sprung"); err != nil {
		t.Fatal(err)
	}
	for _, partitioned := range []string{"", "partition by list (id)"} { // where there is nothing to count, pg_dump is the first to look
		asOwner(t, a, `create table public.bait (id int) `+partitioned)
		tx, err := a.ProjectDatabase().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `drop table public.bait`); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `create view public.bait as select public.spring() as id; alter view public.bait owner to `+
			pgx.Identifier{query(t, a, `select current_database() || '_owner'`)}.Sanitize()); err != nil {
			t.Fatal(err)
		}
		id := back(t, a)
		until(t, "the backup waits for the table", func() bool {
			return query(t, a, `select (count(*) > 0)::text from pg_stat_activity where datname = current_database() and usename like '%\_dump' and wait_event_type = 'Lock'`) == "true"
		})
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, a, id, "completed", "failed").Content("status", "completed")
		asOwner(t, a, `drop view public.bait`)
	}
	if _, err := heard.Exec(t.Context(), "notify sprung, 'the end'"); err != nil {
		t.Fatal(err)
	}
	if n, err := heard.WaitForNotification(t.Context()); err != nil || n.Payload != "the end" {
		t.Errorf("the view's function ran as %v, %v", n, err)
	}
}
