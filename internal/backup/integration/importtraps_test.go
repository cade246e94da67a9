package integration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// forbiddenObjects has objects that a lying install could put into a backup. No project can have
// any of them.
var forbiddenObjects = map[string]string{
	"event trigger": `create function public.fire() returns event_trigger language plpgsql as 'begin end'; create event trigger fire on ddl_command_end execute function public.fire()`,
	"wrapper":       `create foreign data wrapper anything`,
	"language":      `create trusted language anything handler pg_catalog.plpgsql_call_handler`,
}

// TestImportRunsNothingPrivileged imports backups made by a superuser elsewhere, and restores what
// can be restored.
func TestImportRunsNothingPrivileged(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	into := a.WithProject(a.CreateProject("into"))
	into.DisableProofs()
	archive := func(a *apitest.API) string {
		return string(a.Post("/backups/"+makeBackup(t, a)+"/download", `{"encryption": "none"}`).Want(200).Body)
	}

	send := func(body string) *apitest.Reply {
		return into.Send("POST", "/backups/import", body, "Content-Type: application/octet-stream")
	}

	from := a.WithProject(a.CreateProject("liar"))
	from.DisableProofs()

	for name, sql := range forbiddenObjects {
		conn := from.ConnectProject()
		if _, err := conn.Exec(t.Context(), "create table public.padding (); "+sql); err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		r := send(archive(from)).Want(422)
		if !strings.Contains(string(r.Body), "cannot have") {
			t.Errorf("%s: got %s", name, r.Body)
		}

		for _, undo := range []string{"drop table public.padding", "drop event trigger if exists fire",
			"drop function if exists public.fire", "drop foreign data wrapper if exists anything",
			"drop language if exists anything"} {
			if _, err := conn.Exec(t.Context(), undo); err != nil {
				t.Fatalf("%s: %v", undo, err)
			}
		}
	}

	// The superuser's objects belong to the owner after the restore. The platform's tables have the
	// backup's rows, within the limits.
	conn := from.ConnectProject()
	execAsOwner(t, from, trapFunction)
	execAsOwner(t, from,
		`create table public.t (id int check (public.steady(id) > 0), twice int generated always as (public.steady(id)) stored);
		insert into public.t values (1); create index on public.t (public.steady(id)); create materialized view public.m as select public.steady(1) as n`)

	if _, err := conn.Exec(t.Context(), `
		create function public.rise() returns int language sql security definer as 'select 1';
		update storage.usage set files = -1000000, bytes = -1000000, max_files = 1000000000;
		insert into socle.edge_function_limits (memory_mb, mail_ports) values (1000000000, true);
		insert into socle.audit (seq, entry, hash) values (1000000, '{"action": "never"}', '\x00');
		insert into socle.audit_pending (entry, mac) values ('{"action": "never"}', '\x00');
		insert into storage.discarded (blob_uuid) values (gen_random_uuid());
		create function socle.more() returns int language sql as 'select 1'; create table storage.more (id int);
		alter table storage.containers disable trigger all; insert into storage.containers (uuid, id, name, max_file_size, created_by, updated_by, total_files) values (gen_random_uuid(), 'liar', 'liar', 1, gen_random_uuid(), gen_random_uuid(), 99)`); err != nil {
		t.Fatal(err)
	}

	roles := strings.ReplaceAll(attributes, "PROJECT", strings.TrimPrefix(into.DatabaseName(), "socle_"))
	before := query(t, into, roles)
	body := archive(from)
	id := send(body).Want(201).Get("uuid").(string)
	r := into.Post("/backups/"+id+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string)

	// not a table of the platform
	waitForRestore(t, into, r, "failed").Content("error", "the backup is damaged; nothing was restored")

	if _, err := conn.Exec(t.Context(), `drop table storage.more`); err != nil {
		t.Fatal(err)
	}

	id = send(archive(from)).Want(201).Get("uuid").(string)
	restoreInPlace(t, into, id)

	if diff := cmp.Diff(before, query(t, into, roles)); diff != "" {
		t.Errorf("the roles changed:\n%s", diff)
	}

	for sql, want := range map[string]string{
		`select is_called::text from public.strong`:                                                            "false",
		`select is_called::text from public.sprung`:                                                            "true",
		`select (proowner::regrole::text ~ '_owner$')::text from pg_proc where proname = 'rise'`:               "true",
		`select count(*)::text from pg_proc where proname = 'more'`:                                            "0",
		`select files || ' ' || bytes || ' ' || coalesce(max_files::text, 'none') from storage.usage`:          "0 0 none",
		`select count(*)::text from ` + apitest.AuditLog + ` where entry like '%never%'`:                       "0",
		`select count(*)::text from socle.edge_function_limits where mail_ports or memory_mb > 0`:              "0",
		`select count(*)::text from storage.discarded`:                                                         "0",
		`select total_files::text from storage.containers where name = 'liar'`:                                 "0",
		`select count(*)::text from pg_trigger where tgrelid = 'storage.files'::regclass and tgenabled <> 'O'`: "0",
	} {
		if got := query(t, into, sql); got != want {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}

	into.Get("/projects/" + into.Project + "/audit").Want(200)
}
