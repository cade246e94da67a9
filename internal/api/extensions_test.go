package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// Statements of an operator and of the project's owner that use extensions, and a query of their
// result.
const (
	operatorSQL = `create schema extensions; create extension postgis schema extensions; grant usage on schema extensions to public;
		create extension citext schema public; create extension hstore schema extensions;
		alter table extensions.spatial_ref_sys disable row level security`
	ownerSQL = `create table public.places (id int primary key, name public.citext unique, at extensions.geography(point, 4326), more extensions.hstore);
		insert into public.places values (1, 'Berlin', 'SRID=4326;POINT(13.4 52.5)', 'a=>1');
		create index on public.places using gist (at);
		create function public.near(id int) returns float language sql stable as $f$
			select extensions.st_distance(p.at, 'SRID=4326;POINT(13 52)'::extensions.geography) from public.places p where p.id = $1 $f$`
	resultQuery = `select format('%s %s %s %s', (select count(*) from public.places where name = 'BERLIN' and more operator(extensions.->) 'a' = '1'), round(public.near(1)),
		(select srtext from extensions.spatial_ref_sys where srid = 990000), (select relrowsecurity from pg_class where oid = 'extensions.spatial_ref_sys'::regclass))`
)

// TestRestoreExtensions restores a project with extensions in place, as a new project, and in
// another install.
func TestRestoreExtensions(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	execute(t, a, operatorSQL)
	execute(t, a,
		`insert into extensions.spatial_ref_sys (srid, auth_name, srtext) values (990000, 'ours', 'of our own')`)

	asOwner(t, a, ownerSQL)

	want := query[string](t, a, resultQuery)
	if !strings.HasPrefix(want, "1 ") || !strings.HasSuffix(want, "of our own f") {
		t.Fatalf("got %q", want)
	}

	id := createBackup(t, a)
	asOwner(t, a, `drop table public.places`)
	restoreInPlace(t, a, id)

	if got := query[string](t, a, resultQuery); got != want {
		t.Errorf("in place: got %q, want %q", got, want)
	}
	if got := query[bool](t, a,
		`select has_table_privilege('`+a.DatabaseName()+`_owner', 'extensions.spatial_ref_sys', 'insert')`); got {
		t.Error("the owner may insert into the extension's table")
	}

	n := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	waitForRestore(t, a, n.Get("uuid").(string), "completed")

	if got := query[string](t, a.WithProject(n.Get("projectUuid").(string)), resultQuery); got != want {
		t.Errorf("as a new project: got %q, want %q", got, want)
	}

	// An untrusted extension is restored only where an operator has installed it.
	light := a.WithProject(a.CreateProject("light"))
	execute(t, light, `create extension citext schema public; create extension dblink schema public`)
	asOwner(t, light, `create table public.names (name public.citext); insert into public.names values ('Ann')`)

	archive := downloadBackup(light, createBackup(t, light), `{"encryption": "none"}`)
	other := a.WithProject(a.CreateProject("other"))
	importArchive(other, archive).Want(422).Code("extension_missing")
	execute(t, other, `create extension dblink schema public`)
	restoreInPlace(t, other, importArchive(other, archive).Want(201).Get("uuid").(string))

	if n := query[int](t, other,
		`select count(*) from public.names where name operator(public.=) 'ANN'::public.citext`); n != 1 {
		t.Errorf("after the move: got %d names", n)
	}
}
