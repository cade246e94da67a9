package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// operatorChanges sets up extensions and changes them as an operator of the PostgreSQL server can.
const operatorChanges = `
	create extension postgis schema extensions; grant usage on schema extensions to public;
	create extension hstore schema extensions; create extension citext schema public;
	create policy readers on extensions.spatial_ref_sys for select to anon, authenticated using (srid > 0 and auth_name <> 'it''s "odd"');
	create policy "no more" on extensions.spatial_ref_sys as restrictive to public using (extensions.st_srid('SRID=4326;POINT(0 0)'::extensions.geometry) > 0) with check (srid < 1000000);
	alter table extensions.spatial_ref_sys disable row level security, force row level security;
	grant insert, update (srtext), select (auth_name) on extensions.spatial_ref_sys to authenticated; revoke select on extensions.spatial_ref_sys from public;
	grant select on extensions.spatial_ref_sys to anon with grant option; revoke all on extensions.geometry_columns from public;
	revoke execute on function extensions.st_area(text) from public; grant execute on function extensions.st_area(text) to anon;
	revoke execute on function extensions.st_union(extensions.geometry) from public; revoke usage on type extensions.ghstore from public;
	grant trigger on extensions.spatial_ref_sys to authenticated`

// extensionState returns the resulting policies, owners and privileges.
const extensionState = `
	select concat_ws(E'\n', (select string_agg(p::text, E'\n' order by p.policyname) from pg_policies p where schemaname = 'extensions'),
		(select string_agg(row(c.oid::regclass, relrowsecurity, relforcerowsecurity, relowner::regrole)::text, E'\n' order by relname) from pg_class c where relnamespace = 'extensions'::regnamespace and relkind in ('r', 'v')),
		(select string_agg(row(o, x.grantee, x.privilege_type, x.is_grantable)::text, E'\n' order by o, x.grantee, x.privilege_type) from (
			select oid::regclass::text as o, relacl as acl from pg_class where relnamespace = 'extensions'::regnamespace
			union all select attrelid::regclass || '.' || attname, attacl from pg_attribute join pg_class c on c.oid = attrelid where relnamespace = 'extensions'::regnamespace
			union all select oid::regprocedure::text, proacl from pg_proc where pronamespace = 'extensions'::regnamespace and proacl is not null
			union all select oid::regtype::text, typacl from pg_type where typnamespace = 'extensions'::regnamespace) a, aclexplode(acl) x where x.grantee <> x.grantor))`

// TestRestoreExtensions restores a project with extensions in place, as a new project and in
// another one. A restore keeps the owner's objects that use their types and functions, and an
// operator's changes to their objects: rows, privileges, policies and owners.
func TestRestoreExtensions(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	execute(t, a, operatorChanges)
	execute(t, a,
		`insert into extensions.spatial_ref_sys (srid, auth_name, srtext) values (990000, 'ours', 'of our own')`)
	asOwner(t, a, ownerSQL)

	result := query[string](t, a, resultQuery)
	if !strings.HasPrefix(result, "1 ") || !strings.HasSuffix(result, "of our own f") {
		t.Fatalf("got %q", result)
	}

	want := query[string](t, a, extensionState)
	for _, part := range []string{
		"no more", "(extensions.spatial_ref_sys,f,t,", `"extensions.st_area(text)"`,
		"extensions.spatial_ref_sys.srtext",
	} {
		if !strings.Contains(want, part) {
			t.Fatalf("%s is missing in the state:\n%s", part, want)
		}
	}

	id := createBackup(t, a)
	if got := a.Get("/backups/" + id).Want(200).Metadata("warnings"); len(got.([]any)) != 0 {
		t.Errorf("got warnings %v", got)
	}

	asOwner(t, a, `drop table public.places`)
	restoreInPlace(t, a, id)

	if got := query[string](t, a, resultQuery); got != result {
		t.Errorf("in place: got %q, want %q", got, result)
	}
	if got := query[string](t, a, extensionState); got != want {
		t.Errorf("in place: got\n%s\nwant\n%s", got, want)
	}
	if query[bool](t, a,
		`select has_table_privilege('`+a.DatabaseName()+`_owner', 'extensions.spatial_ref_sys', 'insert')`) {
		t.Error("the owner may insert into the extension's table")
	}

	for _, pool := range []string{"anon", "service_role"} { // the extension still works
		execute(t, a, "set role "+pool+"; select extensions.st_astext('POINT(1 2)'::extensions.geometry)")
	}

	// Restored as a new project, with a table owned by the project. Warnings list the changes that
	// no dump contains.
	execute(t, a,
		`create index by_name on extensions.spatial_ref_sys (auth_name); create function public.touch() returns trigger language plpgsql as 'begin return new; end';
		create trigger touch before insert on extensions.spatial_ref_sys for each row execute function public.touch();
		create rule again as on delete to extensions.spatial_ref_sys where old.srid < 0 do also select 1; alter table extensions.spatial_ref_sys add constraint named check (auth_name <> 'nobody');
		create statistics extensions.linked on auth_name, auth_srid from extensions.spatial_ref_sys; alter table extensions.spatial_ref_sys alter auth_srid set statistics 7;
		comment on table extensions.spatial_ref_sys is 'systems'; comment on column extensions.spatial_ref_sys.srid is 'number'; grant select (srid) on extensions.spatial_ref_sys to anon;
		alter table extensions.spatial_ref_sys enable row level security`)

	asOwner(t, a, `alter role current_user set search_path = public, extensions`)
	owner := a.DatabaseName() + "_owner"
	execute(t, a, `alter table extensions.spatial_ref_sys owner to `+owner)
	result, want = query[string](t, a, resultQuery), query[string](t, a, extensionState)
	id = createBackup(t, a)

	warnings := a.Get("/backups/" + id).Want(200).Metadata("warnings").([]any)
	of := " of extensions.spatial_ref_sys, a table of an extension, is in no backup"
	if diff := cmp.Diff([]any{"the added or changed column auth_srid" + of, "the comment" + of,
		"the comment on column srid" + of, "the constraint named" + of, "the index extensions.by_name" + of,
		"the rule again" + of, "the setting search_path of a login of the project is in no backup",
		"the statistics linked" + of, "the trigger touch" + of}, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	n := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	waitForRestore(t, a, n.Get("uuid").(string), "completed")
	copied := a.WithProject(n.Get("projectUuid").(string))
	if got := query[string](t, copied, resultQuery); got != result {
		t.Errorf("as a new project: got %q, want %q", got, result)
	}
	if got := strings.ReplaceAll(query[string](t, copied, extensionState), copied.DatabaseName(),
		a.DatabaseName()); got != want {
		t.Errorf("as a new project: got\n%s\nwant\n%s", got, want)
	}

	// A foreign backup is not trusted with this: no table of an extension gets the project's owner,
	// and nobody the right to create triggers on it.
	light := a.WithProject(a.CreateProject("light"))
	restoreInPlace(t, light, importArchive(light, downloadBackup(a, id, `{"encryption": "none"}`)).Want(201).
		Get("uuid").(string))

	got := query[string](t, light, extensionState)
	if strings.Contains(got, "TRIGGER") ||
		(!strings.Contains(got, "(extensions.spatial_ref_sys,t,t,socle)") &&
			!strings.Contains(got, "(extensions.spatial_ref_sys,t,t,postgres)")) || strings.Count(got, "readers") != 1 {
		t.Errorf("after the restore of a foreign backup: got\n%s", got)
	}
}
