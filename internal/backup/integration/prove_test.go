package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

// TestBackupIsProven waits for the proof of a backup, then damages it. The next proof detects that.
func TestBackupIsProven(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	execAsOwner(t, a, `create table public.orders (id int check (id > 0)); insert into public.orders values (1)`)

	id := makeBackup(t, a)
	waitUntil(t, "the backup is proven", func() bool {
		return a.Get("/backups/"+id).Want(200).Metadata("provenAt") != nil
	})

	const proofs = `select count(*)::text from pg_database where datname ~ 'PROJECT_(proof|asked)_'`
	if got := query(t, a, strings.ReplaceAll(proofs, "PROJECT", a.DatabaseName())); got != "0" {
		t.Errorf("%s copies remain", got)
	}

	for _, name := range storedFiles(t, a) {
		if strings.Contains(name, id+".dump") {
			if err := os.Truncate(name, 1000); err != nil {
				t.Fatal(err)
			}
		}
	}

	a.Exec(`delete from river.river_job where kind = 'prove'`)
	a.Exec(`update platform.backups set proven_at = now() - interval '2 days'`)

	if err := a.Server.Services().Queue.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	waitUntil(t, "the damage is found", func() bool {
		return a.Get("/backups/"+id).Want(200).
			Metadata("proofError") == "the backup is damaged; nothing was restored"
	})
}

// TestDamagedContentIsRepaired damages a content of backups: while the file exists, the next proof
// or restore copies it again.
func TestDamagedContentIsRepaired(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	c := a.Create("/containers", `{"name": "reports"}`)
	file := upload(t, a, c, "a.txt", strings.Repeat("bytes of a file", 10000))
	id := makeBackup(t, a)

	flip := func() {
		t.Helper()

		names := a.StoredFiles("backups/content/*")
		if len(names) != 1 {
			t.Fatalf("got contents %v", names)
		}

		text, err := os.ReadFile(names[0])
		if err == nil {
			text[len(text)/2] ^= 1
			err = os.WriteFile(names[0], text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	flip()
	a.Post("/backups/"+id+"/verify", "").Want(200)
	waitUntil(t, "the proof has ended", func() bool {
		return a.Get("/backups/"+id).Want(200).Metadata("triedAt") != nil
	})

	if r := a.Get("/backups/" + id).Want(200); r.Metadata("provenAt") == nil ||
		!strings.Contains(a.Log.String(), "repaired from a file") {
		t.Errorf("got proof error %v", r.Metadata("proofError"))
	}

	flip()
	restoreInPlace(t, a, id)
	a.Delete("/containers/" + c + "/files/" + file).Want(200)
	restoreInPlace(t, a, id)

	a.Delete("/containers/" + c + "/files/" + file).Want(200)
	flip()

	if reason := failRestore(t, a, id); reason != "the backup is damaged; nothing was restored" {
		t.Errorf("without the file: got error %q", reason)
	}
}

// TestProofComparesRows tests that a backup is not proven if its rows change during the restore,
// although their number is right.
func TestProofComparesRows(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	execAsOwner(t, a, `
		create table public.counts (name text, n int, at timestamptz default now(), price float8 default 1e-7 / 3);
		insert into public.counts values ('looks', 0), ('looks', 0);
		create function public.look(int) returns boolean language plpgsql as 'begin update public.counts set n = n + 1; return true; end';
		create table public.looked (id int check (public.look(id)));
		insert into public.looked values (1)`) // restored after the row counts

	webhook := factWebhook(a)
	id := makeBackup(t, a)
	waitUntil(t, "the proof has ended", func() bool {
		return a.Get("/backups/"+id).Want(200).Metadata("triedAt") != nil
	})

	const why = "the restored rows of table public.counts differ from the backup"
	r := a.Get("/backups/" + id).Want(200)
	if proven, got := r.Metadata("provenAt"), r.Metadata("proofError"); proven != nil || got != why {
		t.Errorf("got provenAt %v and proofError %v", proven, got)
	}
	waitForFact(t, a, webhook, "socle.backup.proof_failed.v1", `"id":"`+id, `"error":"`+why+`"`)
}

// TestProofIsNoOrphan looks for orphaned copies while a requested proof fills one.
func TestProofIsNoOrphan(t *testing.T) {
	t.Parallel()

	held := filepath.Join(t.TempDir(), "held")
	dir := programFolder(t, passThrough)
	replaceProgram(t, dir, "pg_restore",
		`case "$*" in *--data-only*) while [ -e `+held+` ]; do sleep 0.05; done; esac; exec "$real" "$@"`)

	a := apitest.New(t, func(c *config.Config) { c.PostgresBin = dir })
	a.DisableProofs()
	a.CreateTable("orders")
	id := makeBackup(t, a)

	if err := os.WriteFile(held, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	a.Post("/backups/"+id+"/verify", "").Want(200)

	made := func() bool {
		return query(t, a,
			`select count(*)::text from pg_database where datname ~ '`+a.DatabaseName()+`_(proof|asked)_'`) == "1"
	}

	waitUntil(t, "the copy is created", made)
	a.RunMaintenance()

	if !made() {
		t.Error("the copy was dropped during the proof")
	}

	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}

	waitUntil(t, "the proof has ended", func() bool {
		return a.Get("/backups/"+id).Want(200).Metadata("triedAt") != nil
	})

	if why := a.Get("/backups/" + id).Want(200).Metadata("proofError"); why != nil && why != "" {
		t.Errorf("got proof error %v", why)
	}
}

// TestInterruptedProof terminates the sessions of a proof, as a restart of PostgreSQL does, and
// pauses a project before its proof. Neither result is recorded, and the backups are proven later.
func TestInterruptedProof(t *testing.T) {
	t.Parallel()

	held := filepath.Join(t.TempDir(), "held")
	dir := programFolder(t, passThrough)
	replaceProgram(t, dir, "pg_restore",
		`case "$*" in *--data-only*) while [ -e `+held+` ]; do : > `+held+
			`.there; sleep 0.05; done; esac; exec "$real" "$@"`)

	a := apitest.New(t, func(c *config.Config) { c.PostgresBin = dir })

	hold := func() {
		t.Helper()

		if err := os.WriteFile(held, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	isHeld := func() { // the proof has a session and has restored nothing yet
		t.Helper()

		waitUntil(t, "the proof is stopped", func() bool { return os.Remove(held+".there") == nil })
	}

	release := func() {
		t.Helper()

		if err := os.Remove(held); err != nil {
			t.Fatal(err)
		}
	}

	role := "ends_" + strings.TrimPrefix(a.DatabaseName(), "socle_")
	a.Exec(`create role ` + role)
	execAsOwner(t, a, `
		create function public.lasts() returns boolean language sql as 'select current_database() !~ ''proof'' or not exists (select from pg_catalog.pg_roles where rolname = ''`+role+`'') or pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())';
		create table public.orders (id int check (public.lasts())); insert into public.orders values (1)`)

	hold()
	id := makeBackup(t, a)
	isHeld()
	a.Exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname ~ $1`, a.DatabaseName()+"_proof_")
	release()

	failures := func(n int) []string {
		return apitest.Value[[]string](a,
			`select array(select e ->> 'error' from river.river_job, unnest(errors) e where kind = 'prove' and args ->> 'backup' = $1 limit $2)`, id, n)
	}
	waitUntil(t, "the proof is interrupted twice", func() bool { return len(failures(2)) == 2 })

	for i, want := range []string{"the platform's tables", "terminating connection"} {
		if why := failures(2)[i]; !strings.Contains(why, want) {
			t.Errorf("proof %d: got error %q, want %q", i, why, want)
		}
	}

	if r := a.Get("/backups/" + id).Want(200); r.Metadata("triedAt") != nil || r.Metadata("proofError") != "" {
		t.Errorf("got triedAt %v and proofError %v", r.Metadata("triedAt"), r.Metadata("proofError"))
	}

	proven := func(id string) {
		t.Helper()

		a.Exec(`update river.river_job set state = 'available', scheduled_at = now() where kind = 'prove' and state in ('retryable', 'scheduled')`)
		waitUntil(t, "the backup is proven", func() bool {
			return a.Get("/backups/"+id).Want(200).Metadata("provenAt") != nil
		})
	}

	a.Exec(`drop role ` + role)
	proven(id)

	hold()
	a.Post("/backups/"+id+"/verify", "").Want(200)
	isHeld()

	waiting := makeBackup(t, a) // proven after the other one
	a.Post("/projects/"+a.Project+"/pause", "").Want(200)
	release()

	waitUntil(t, "the proof waits for the project", func() bool {
		return apitest.Value[bool](a,
			`select exists (select from river.river_job where kind = 'prove' and args ->> 'backup' = $1 and state = 'scheduled')`, waiting)
	})

	a.Post("/projects/"+a.Project+"/resume", "").Want(200)
	proven(waiting)
}

// factWebhook creates a webhook for the facts of backups, whose endpoint does not answer.
func factWebhook(a *apitest.API) string {
	path := "/projects/" + a.Project + "/webhooks"
	return path + "/" + a.Create(path, `{"name": "backups", "endpoint": "https://127.0.0.1:1/", "events": ["socle.backup.failed.v1",
		"socle.backup.proof_failed.v1"]}`)
}

// waitForFact waits until a webhook has a delivery of a type, whose body has texts.
func waitForFact(t *testing.T, a *apitest.API, webhook, typ string, texts ...string) {
	t.Helper()

	var all []any
	waitUntil(t, typ, func() bool {
		all, _ = a.Get(webhook + "/deliveries?type=" + typ).Want(200).Get("").([]any)
		return len(all) > 0
	})
	delivery, _ := all[0].(map[string]any)["uuid"].(string)
	body, _ := a.Get(webhook + "/deliveries/" + delivery).Want(200).Get("body").(string)
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%s: got %s, want it to have %s", typ, body, text)
		}
	}
}
