package api_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// Statements of the project's owner that use extensions, and a query of their result.
const (
	ownerSQL = `create table public.places (id int primary key, name public.citext unique, at extensions.geography(point, 4326), more extensions.hstore);
		insert into public.places values (1, 'Berlin', 'SRID=4326;POINT(13.4 52.5)', 'a=>1');
		create index on public.places using gist (at);
		create function public.near(id int) returns float language sql stable as $f$
			select extensions.st_distance(p.at, 'SRID=4326;POINT(13 52)'::extensions.geography) from public.places p where p.id = $1 $f$`
	resultQuery = `select format('%s %s %s %s', (select count(*) from public.places where name = 'BERLIN' and more operator(extensions.->) 'a' = '1'), round(public.near(1)),
		(select srtext from extensions.spatial_ref_sys where srid = 990000), (select relrowsecurity from pg_class where oid = 'extensions.spatial_ref_sys'::regclass))`
)

// TestRestoreUntrustedExtension checks that an untrusted extension is restored only where an
// operator has installed it.
func TestRestoreUntrustedExtension(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	light := a.WithProject(a.CreateProject("light"))
	execute(t, light, `create extension citext schema public; create extension dblink schema public`)
	asOwner(t, light, `create table public.names (name public.citext); insert into public.names values ('Ann')`)

	light.DisableProofs()
	archive := downloadBackup(light, createBackup(t, light), `{"encryption": "none"}`)
	other := a.WithProject(a.CreateProject("other"))
	other.DisableProofs()
	importArchive(other, archive).Want(422).Code("extension_missing")
	execute(t, other, `create extension dblink schema public`)
	restoreInPlace(t, other, importArchive(other, archive).Want(201).Get("uuid").(string))

	if n := query[int](t, other,
		`select count(*) from public.names where name operator(public.=) 'ANN'::public.citext`); n != 1 {
		t.Errorf("after the move: got %d names", n)
	}
}
