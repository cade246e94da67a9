package job_test

import (
	"os"
	"strings"
	"testing"

	"socle/internal/api/apitest"
)

// TestBackupIsProven waits until a backup was restored to see whether it can be; and damages one that was, which is found out.
func TestBackupIsProven(t *testing.T) {
	t.Parallel()
	a := apitest.New(t)
	a.CreateTable("orders")
	id := backedUp(t, a)
	until(t, "the backup is proven", func() bool { return a.Get("/backups/"+id).Want(200).Metadata("provenAt") != nil })
	const proofs = `select count(*)::text from pg_database where datname like '%PROJECT\_proof\_%'`
	if got := query(t, a, strings.ReplaceAll(proofs, "PROJECT", strings.ReplaceAll(a.Project, "-", ""))); got != "0" {
		t.Errorf("%s databases are left", got)
	}

	asOwner(t, a, `create table public.later (id int check (id > 0)); insert into public.later values (1)`)
	damaged := backedUp(t, a)
	until(t, "the backup is proven", func() bool { return a.Get("/backups/"+damaged).Want(200).Metadata("provenAt") != nil })
	for _, name := range keptOf(t, a) {
		if strings.Contains(name, damaged+".dump") {
			if err := os.Truncate(name, 1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.Exec(`delete from river.river_job where kind = 'prove'`)
	a.Exec(`update platform.backups set proven_at = now() - interval '2 days'`)
	if err := a.Server.Queue().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "the damage is found", func() bool {
		return a.Get("/backups/"+damaged).Want(200).Metadata("proofError") == "the backup is damaged; nothing of it was restored"
	})
}
