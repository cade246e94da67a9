package server_test

import (
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
)

// TestKilledSchemaMigration kills the server in the middle of a project's second migration, and of
// a comparison in a scratch copy. Nothing of the migration remains, and it can be applied; the
// scratch copy is dropped.
func TestKilledSchemaMigration(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	b := p.inspect(t)
	database := b.registry.Database(uuid.MustParse(c.project))

	migrations := func(second string) string {
		return `{"migrations": [
			{"version": "20261123101500", "name": "first", "sql": "create table first (id int)"},
			{"version": "20261123101600", "name": "second", "sql": "create table second (id int); ` + second + `"}]}`
	}

	// runs tells whether a session sleeps in the project's database or a copy of it
	runs := func(suffix string) bool {
		return len(b.values(`
			select pid::text from pg_stat_activity where datname = $1 and wait_event = 'PgSleep'`, database+suffix)) > 0
	}

	for path, suffix := range map[string]string{
		"/migrations": "", "/migrations/diff": "_scratch_0000000000000000",
	} {
		var lost sync.WaitGroup
		lost.Go(func() { c.send(t, "POST", path, migrations("select pg_sleep(3600)")) })

		eventually(t, "the second migration runs", func() bool { return runs(suffix) })
		p.signal(syscall.SIGKILL)
		p.wait()
		lost.Wait()

		p = serve(t, p.dir)
		c = c.at(p)

		if runs(suffix) {
			t.Errorf("%s: the server is ready, and the migration runs on", path)
		}
	}

	eventually(t, "the scratch copy is dropped", func() bool {
		return len(b.values(`select datname::text from pg_database where starts_with(datname, $1)`, database)) == 1
	})
	c.want(t, 404, "GET", "/tables/second", "")

	got := c.want(t, 200, "POST", "/migrations", migrations("select 1"))
	if applied, _ := got["applied"].([]any); len(applied) != 1 || got["alreadyApplied"] != 1.0 {
		t.Errorf("after the kill: got %v, want the second migration applied", got)
	}

	b.close()
}
