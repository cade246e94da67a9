package integration_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// endlessRestore creates a table whose restore never ends: a check constraint traps its
// cancellation.
const endlessRestore = `
	create function public.spin() returns boolean language plpgsql as $f$
	begin
		while pg_catalog.current_database() ~ '_(new|proof|asked)_' loop
			begin
				perform pg_catalog.pg_sleep(60);
			exception when query_canceled then
			end;
		end loop;
		return true;
	end $f$;
	create table public.spinning (id int check (public.spin()));
	insert into public.spinning values (1);`

// endlessIndex creates a table whose compaction never ends, because of an index expression.
const endlessIndex = `
	create function public.slow(int) returns int immutable language sql as 'select 1';
	create table public.slowed (id int);
	insert into public.slowed values (1);
	create index on public.slowed (public.slow(id));
	create or replace function public.slow(int) returns int immutable language plpgsql as 'begin perform pg_catalog.pg_sleep(600); return 1; end';`

// running returns the number of an organization's projects with a running job of a kind.
func running(a *apitest.API, kind, organization string) int {
	return apitest.Value[int](a, `
		select count(distinct p.uuid) from river.river_job j
		left join platform.backups b on b.uuid = (j.args ->> 'backup')::uuid
		left join platform.restores r on r.uuid = (j.args ->> 'restore')::uuid
		join platform.projects p on p.uuid = coalesce(b.project_uuid, r.project_uuid, (j.args ->> 'project')::uuid)
		where j.kind = $1 and j.state = 'running' and p.organization_uuid = $2`, kind, organization)
}

// TestHostileJobs has one organization restore, prove and compact endlessly, in more projects than
// there are workers. Meanwhile, another organization's backup is made, proven and restored, and its
// table compacted.
func TestHostileJobs(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	hostile := []*apitest.API{a, a.WithProject(a.CreateProject("second")), a.WithProject(a.CreateProject("third"))}
	bystander := a.SignUp("bystander")
	bystander.Project = bystander.CreateProject("theirs")
	bystander.CreateTable("orders")

	for _, h := range hostile {
		execAsOwner(t, h, endlessRestore)
		id := makeBackup(t, h) // its proof is enqueued
		h.Post("/backups/"+id+"/restore", `{"target": "in_place"}`).Want(201)
		execAsOwner(t, h, endlessIndex)
		h.Post("/tables/slowed/compaction", "").Want(201)
	}

	for _, kind := range []string{"prove", "restore", "compaction"} {
		waitUntil(t, kind+" runs", func() bool { return running(a, kind, a.Organization) > 0 })
	}

	id := makeBackup(t, bystander)
	waitUntil(t, "the bystander's backup is proven", func() bool {
		return bystander.Get("/backups/"+id).Want(200).Metadata("provenAt") != nil
	})

	restoreInPlace(t, bystander, id)
	bystander.Post("/tables/orders/compaction", "").Want(201)
	waitUntil(t, "the bystander's table is compacted", func() bool {
		return bystander.Get("/tables/orders/compaction").Want(200).Get("status") == "completed"
	})

	for _, kind := range []string{"prove", "restore", "compaction"} {
		if n := running(a, kind, a.Organization); n == 0 {
			t.Errorf("no %s job of the hostile organization is running", kind)
		}
	}

	if strings.Contains(a.Log.String(), "limit workers to shares") {
		t.Error("jobs beyond their share could not be delayed")
	}
}

// TestEndlessRestore restores and proves a backup that never ends: the timeout ends the task and
// its session.
func TestEndlessRestore(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	a.Exec(`insert into platform.settings (name, value, updated_by) values ('max_restore_seconds', '2', gen_random_uuid())`)
	execAsOwner(t, a, endlessRestore)

	id := makeBackup(t, a)

	if why := failRestore(t, a, id); why != "restoring the database took longer than 2s" {
		t.Errorf("got restore error %q", why)
	}

	a.Post("/backups/"+id+"/verify", "").Want(200)
	waitUntil(t, "the proof has ended", func() bool {
		return a.Get("/backups/"+id).Want(200).Metadata("triedAt") != nil
	})

	if why := a.Get("/backups/" + id).Want(200).
		Metadata("proofError"); why != "restoring the database took longer than 2s" {
		t.Errorf("got proof error %q", why)
	}

	waitUntil(t, "the copies are dropped", func() bool {
		return query(t, a,
			`select count(*)::text from pg_database where datname ~ '`+a.DatabaseName()+`_(new|proof|asked)_'`) == "0"
	})

	if n := query(t, a,
		`select count(*)::text from pg_stat_activity where datname ~ '`+a.DatabaseName()+
			`_(new|proof|asked)_'`); n != "0" {
		t.Errorf("%s sessions are still running", n)
	}
}
