package integration_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgserver"
)

// dumpedRows returns the number of rows of a table in a backup's dump.
func dumpedRows(t *testing.T, a *apitest.API, id, schema, table string) int {
	t.Helper()

	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}

	out, err := exec.CommandContext(t.Context(), binaries.Path("pg_restore"),
		"--data-only", "--schema="+schema, "--table="+table, "--file=-", dump(t, a, id)).Output()
	if err != nil {
		t.Fatal(err)
	}

	_, rows, found := strings.Cut(string(out), " FROM stdin;\n")
	if !found {
		t.Fatalf("the dump has no data of %s.%s", schema, table)
	}

	rows, _, _ = strings.Cut(rows, "\\.\n")
	return strings.Count(rows, "\n")
}

// retryBackups makes postponed backups of the project due.
func retryBackups(a *apitest.API) {
	a.Exec(`update river.river_job set state = 'available', scheduled_at = now()
		where kind = 'backup' and state in ('available', 'scheduled') and args ->> 'project' = $1`, a.Project)
}

// completeBackup retries a backup until it is completed.
func completeBackup(t *testing.T, a *apitest.API, id string) {
	t.Helper()

	waitUntil(t, "the backup has ended", func() bool {
		retryBackups(a)
		status := a.Get("/backups/" + id).Want(200).Get("status")

		return status == "completed" || status == "failed"
	})

	a.Get("/backups/"+id).Want(200).Content("error", "")
}

// TestBackupMeetsReplacedTable begins a backup while another transaction replaces a table's rows in
// a way invisible to older snapshots. The dump must have the new rows.
func TestBackupMeetsReplacedTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()

	for name, replace := range map[string]string{
		"truncated": `truncate public.stock; insert into public.stock select generate_series(1, 7)`,
		"recreated": `drop table public.stock; create table public.stock as select generate_series(1, 7) as id`,
		"renamed": `alter table public.stock rename to sold; create table public.stock as select generate_series(1, 7) as id;
			drop table public.sold`,
	} {
		t.Run(name, func(t *testing.T) {
			a := a.WithT(t)
			execAsOwner(t, a, `create table public.stock as select generate_series(1, 3) as id`)

			tx, err := a.ConnectProject().Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			if _, err := tx.Conn().PgConn().Exec(t.Context(), replace).ReadAll(); err != nil {
				t.Fatal(err)
			}

			id := startBackup(t, a)
			waitUntil(t, "the backup waits for the table", func() bool {
				return a.Get("/backups/"+id).Want(200).
					Metadata("waitingFor") == "the table public.stock, which another transaction has locked"
			})

			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}

			completeBackup(t, a, id)

			if got := dumpedRows(t, a, id, "public", "stock"); got != 7 {
				t.Errorf("got %d rows in the dump, want 7", got)
			}

			execAsOwner(t, a, `drop table public.stock`)
		})
	}
}

// TestBackupMeetsDroppedTable begins a backup while another transaction drops a table.
func TestBackupMeetsDroppedTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()

	for _, partitioned := range []string{"", "partition by list (id)"} {
		execAsOwner(t, a, `create table public.dropped (id int) `+partitioned)

		tx, err := a.ConnectProject().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if _, err := tx.Exec(t.Context(), `drop table public.dropped`); err != nil {
			t.Fatal(err)
		}

		id := startBackup(t, a)
		waitUntil(t, "the backup waits for the table", func() bool {
			waits, _ := a.Get("/backups/" + id).Want(200).Metadata("waitingFor").(string)
			return strings.HasPrefix(waits, "the table public.dropped")
		})

		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}

		completeBackup(t, a, id)
	}
}

// TestBackupCopiesFilesAfterTables replaces a table's rows while the backup copies the bytes of
// files. The change does not wait, and the dump has the rows of the snapshot.
func TestBackupCopiesFilesAfterTables(t *testing.T) {
	t.Parallel()

	service := blobtest.New(t)
	a := apitest.New(t, func(c *config.Config) { service.Configure(c) })
	a.DisableProofs()
	upload(t, a, a.Create("/containers", `{"name": "reports"}`), "a", "bytes")
	execAsOwner(t, a, `create table public.stock as select generate_series(1, 3) as id`)

	copying, replaced := make(chan struct{}), make(chan struct{})
	release, once := sync.OnceFunc(func() { close(replaced) }), sync.OnceFunc(func() { close(copying) })
	defer release()

	service.OnRequest(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" && strings.Contains(r.URL.Path, "/backups/content/") {
			once()
			<-replaced
		}

		return false
	})

	id := startBackup(t, a)
	<-copying
	execAsOwner(t, a,
		`set lock_timeout = '10s'; begin; truncate public.stock; insert into public.stock select generate_series(1, 7); commit`)

	release()
	waitForBackup(t, a, id, "completed", "failed").Content("error", "")

	if got := dumpedRows(t, a, id, "public", "stock"); got != 3 {
		t.Errorf("got %d rows in the dump, want 3", got)
	}
}

// TestBackupHoldsItsTables stops pg_dump before it locks anything: the tables are protected from
// replacement already. A schema cannot be locked; if another takes its name, the backup is retried.
func TestBackupHoldsItsTables(t *testing.T) {
	t.Parallel()

	held := filepath.Join(t.TempDir(), "held")
	dir := programFolder(t, `while [ -e `+held+` ]; do : > `+held+`.there; sleep 0.05; done; exec "$real" "$@"`)
	a := apitest.New(t, func(c *config.Config) { c.PostgresBin = dir })
	a.DisableProofs()
	execAsOwner(t, a, `create schema blue; create table blue.stock as select generate_series(1, 3) as id`)

	if err := os.WriteFile(held, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	id := startBackup(t, a)
	waitUntil(t, "pg_dump is stopped", func() bool { return fileExists(held + ".there") })

	_, err := a.ConnectProject().PgConn().Exec(t.Context(), `set lock_timeout = '50ms'; truncate blue.stock`).ReadAll()
	if pg.State(err) != "55P03" { // lock_not_available
		t.Errorf("truncate during the dump: got %v, want lock_not_available", err)
	}

	execAsOwner(t, a, `alter schema blue rename to green; create schema blue; create table blue.stock (id int)`)
	if err := errors.Join(os.Remove(held), os.Remove(held+".there")); err != nil {
		t.Fatal(err)
	}

	completeBackup(t, a, id)

	for schema, want := range map[string]int{"blue": 0, "green": 3} {
		if got := dumpedRows(t, a, id, schema, "stock"); got != want {
			t.Errorf("got %d rows of %s.stock in the dump, want %d", got, schema, want)
		}
	}
}

// TestBackupAmongChanges makes backups while pg_dump reports tables that come and go. A backup is
// retried until it succeeds, or exceeds the limit and names the collision.
func TestBackupAmongChanges(t *testing.T) {
	t.Parallel()

	left := filepath.Join(t.TempDir(), "left")
	dir := programFolder(t, `n=$(cat `+left+`); [ "$n" -gt 0 ] || exec "$real" "$@"; echo $((n - 1)) > `+left+`
		echo 'pg_dump: error: query failed: ERROR:  relation "public.fleeting" does not exist' >&2; exit 1`)

	a := apitest.New(t, func(c *config.Config) { c.PostgresBin = dir })
	a.DisableProofs()

	fail := func(times int) {
		t.Helper()

		if err := os.WriteFile(left, []byte(strconv.Itoa(times)), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	fail(6) // one more than the attempts before a postponement
	completeBackup(t, a, startBackup(t, a))

	fail(1000)
	id := startBackup(t, a)

	const met = `relation "public.fleeting" does not exist`
	waitUntil(t, "the backup names the collision", func() bool {
		r := a.Get("/backups/" + id).Want(200)
		waits, _ := r.Metadata("waitingFor").(string)

		return r.Get("status") == "pending" && strings.Contains(waits, met)
	})

	a.Exec(`update platform.backups set started_at = now() - interval '31 minutes' where uuid = $1`, id)
	retryBackups(a)

	if why := waitForBackup(t, a, id, "failed").Get("error").(string); !strings.Contains(why, met) ||
		!strings.Contains(why, "30 minutes") {
		t.Errorf("got error %q", why)
	}
}
