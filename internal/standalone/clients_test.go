package standalone

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// clients is the directory of the scripts for client libraries.
const clients = "../server/testdata/clients"

// TestClients runs a client library against features that only a standalone server can enable. The
// script prints every failed step.
func TestClients(t *testing.T) {
	t.Parallel()

	if _, err := os.Stat(filepath.Join(clients, "node_modules")); err != nil {
		t.Fatal("the client libraries are missing: make clients")
	}

	d := newDatabase(t, "librarian")
	d.exec(`create schema extensions; create extension postgis schema extensions; grant usage on schema extensions to public;
		create table api.shops (id int primary key, name text, at extensions.geometry(Point, 4326));
		insert into api.shops values (1, 'Cambridge', 'SRID=4326;POINT(-71.5 42.25)'), (2, 'Kendall', 'SRID=4326;POINT(-71 42)'); grant all on api.shops to web_user;
		create function api.near(most int) returns setof api.shops language sql stable as 'select * from api.shops order by id limit most';
		create function api.one() returns int language sql stable as 'select 1';
		create function api.zone() returns text language sql stable as $$ select current_setting('timezone') $$;
		create function api.sleep() returns void language sql as 'select pg_sleep(60)';
		create function second.two() returns int language sql stable as 'select 2'; analyze api.shops`)

	s, _ := run(t,
		write(t,
			d.config("db-schemas = \"api, second\"\ndb-plan-enabled = true\ndb-aggregates-enabled = true\ndb-tx-end = \"commit-allow-override\"\ndb-extra-search-path = \"extensions\"")))
	client{t, s.URL}.until(200, "/things", "Accept-Profile", "second")
	node := exec.CommandContext(t.Context(), "node", "standalone.mjs")
	node.Dir = clients
	node.Env = append(os.Environ(), "SOCLE_ROWS="+s.URL, "SOCLE_USER="+sign(secret, `{"role":"web_user","sub":"ann"}`))

	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
