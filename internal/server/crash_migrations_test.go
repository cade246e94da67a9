package server_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
)

// migratedDatabase is a database at one of its migrations.
type migratedDatabase struct {
	t      *testing.T
	config *pgx.ConnConfig
	schema string
	folder string // folder of the migrations
	newest int64
}

func newMigratedDatabase(t *testing.T, url, database, schema, folder string) migratedDatabase {
	t.Helper()

	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}

	if database != "" {
		config.Database = database
	}

	files, err := filepath.Glob(folder + "/*.sql")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v of %s, %v", files, folder, err)
	}

	return migratedDatabase{t, config, schema, folder, int64(len(files))}
}

// migrateTo migrates the database to a version.
func (m migratedDatabase) migrateTo(version int64) {
	m.t.Helper()

	if err := pg.MigrateTo(m.t.Context(), m.config, m.schema, os.DirFS(m.folder), version); err != nil {
		m.t.Fatal(err)
	}
}

func (m migratedDatabase) connect() *pgx.Conn {
	m.t.Helper()

	conn, err := pgx.ConnectConfig(m.t.Context(), m.config)
	if err != nil {
		m.t.Fatal(err)
	}

	m.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// schemaState returns the recorded version, and all columns, constraints, indexes and functions.
func (m migratedDatabase) schemaState() (version int64, all string) {
	m.t.Helper()

	const schemas = "n.nspname in ('platform', 'auth', 'forms', 'realtime', 'socle', 'storage')"
	conn := m.connect()
	defer conn.Close(m.t.Context())

	err := conn.QueryRow(m.t.Context(), `
		select (select max(version_id) from `+m.schema+`.migrations where is_applied),
			string_agg(what, E'\n' order by what)
		from (
			select n.nspname || '.' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
				|| ' ' || a.attnotnull as what
			from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
			where a.attnum > 0 and not a.attisdropped and `+schemas+`
			union all
			select n.nspname || ' ' || conname || ' ' || pg_get_constraintdef(c.oid)
			from pg_constraint c join pg_namespace n on n.oid = c.connamespace where `+schemas+`
			union all
			select n.nspname || ' ' || p.proname || ' ' || md5(p.prosrc)
			from pg_proc p join pg_namespace n on n.oid = p.pronamespace where `+schemas+`) t`).Scan(&version, &all)
	if err != nil {
		m.t.Fatal(err)
	}

	return version, all
}

// interrupt starts a server and kills it after a migration, before its version is recorded.
func (m migratedDatabase) interrupt(dir string, settings ...string) {
	m.t.Helper()

	before, was := m.schemaState()
	conn := m.connect()
	hold, err := conn.Begin(m.t.Context())
	if err == nil {
		_, err = hold.Exec(m.t.Context(), "lock table "+m.schema+".migrations in share mode")
	}
	if err != nil {
		m.t.Fatal(err)
	}

	p := launch(m.t, dir, settings...)
	watch := m.connect()
	sessions := func(where string) (n int) {
		m.t.Helper()

		if err := watch.QueryRow(m.t.Context(),
			`select count(*) from pg_stat_activity
			where datname = current_database() and pid not in (pg_backend_pid(), $1) and `+where,
			conn.PgConn().PID()).Scan(&n); err != nil {
			m.t.Fatal(err)
		}

		return n
	}

	eventually(m.t, "the migration is under way", func() bool {
		return sessions("wait_event_type = 'Lock' and query ilike '%migrations%'") > 0
	})

	p.signal(syscall.SIGKILL)
	p.wait()

	if err := hold.Rollback(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}

	eventually(m.t, "PostgreSQL has noticed that the server is gone", func() bool {
		return sessions("backend_type = 'client backend' and query ilike '%migrations%'") == 0
	})

	if version, is := m.schemaState(); version != before || is != was {
		m.t.Errorf("a migration that was interrupted leaves version %d of %d (-before +after):\n%s", version, before,
			cmp.Diff(was, is))
	}
}

// TestKilledMigration kills the server during a migration of the platform database and of a
// project's database. The migration must be rolled back, and the next start must complete it.
func TestKilledMigration(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	setting := "SOCLE_DATABASE_URL=" + url
	dir := t.TempDir()
	m := newMigratedDatabase(t, url, "", "platform", "../platform/migrations")
	m.migrateTo(1 + rand.Int64N(m.newest-1))
	m.interrupt(dir, setting)

	p := serve(t, dir, setting)
	version, is := m.schemaState()
	whole := newMigratedDatabase(t, pgtest.URL(t), "", m.schema, m.folder)
	whole.migrateTo(m.newest)

	if _, want := whole.schemaState(); version != m.newest || is != want {
		t.Errorf("got version %d, want %d (-want +got):\n%s", version, m.newest, cmp.Diff(want, is))
	}

	c := p.newClient()
	undisturbed := databaseOf(t, url, c.want(t, 201, "POST", "/projects", `{"name": "undisturbed"}`)["uuid"].(string))
	for range crashesOr(t, 1) {
		p.signal(syscall.SIGKILL)
		p.wait()

		project := newMigratedDatabase(t, url, databaseOf(t, url, c.project), "socle", "../projectdb/migrations")
		old := 1 + rand.Int64N(project.newest-1)
		platform := m.connect()
		for _, sql := range []string{
			"drop database " + project.config.Database + " with (force)",
			"create database " + project.config.Database + " template template0",
		} {
			if _, err := platform.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}

		project.migrateTo(old)
		if _, err := platform.Exec(t.Context(), `update platform.projects set schema_version = $1 where uuid = $2`, old,
			c.project); err != nil {
			t.Fatal(err)
		}

		project.interrupt(dir, setting)
		p = serve(t, dir, setting)
		c = c.at(p)

		version, is := project.schemaState()
		if _, want := newMigratedDatabase(t, url, undisturbed, "socle",
			"../projectdb/migrations").schemaState(); version !=
			project.newest || is != want {
			t.Errorf("from version %d: got %d, want %d (-want +got):\n%s", old, version, project.newest,
				cmp.Diff(want, is))
		}

		c.waitUntilServing(t)
		c.want(t, 201, "POST", "/containers", `{"name": "reports"}`)
	}
}

// TestUsedInstallKeepsDatabaseNames checks that only an install without users starts to hide
// projects in database names.
func TestUsedInstallKeepsDatabaseNames(t *testing.T) {
	t.Parallel()

	const hides = 17 // version of the migration that adds the key

	for _, used := range []bool{false, true} {
		m := newMigratedDatabase(t, pgtest.URL(t), "", "platform", "../platform/migrations")
		m.migrateTo(hides - 1)
		conn := m.connect()
		if used {
			const user = `
				set session_replication_role = replica; -- a user without an organization
				insert into platform.users
					(uuid, username, username_folded, email, email_folded, password_hash, organization_uuid)
				values (gen_random_uuid(), 'ada', 'ada', 'ada@example.com', 'ada@example.com', 'x', gen_random_uuid())`
			if _, err := conn.Exec(t.Context(), user); err != nil {
				t.Fatal(err)
			}
		}

		m.migrateTo(hides)

		var hidden bool
		if err := conn.QueryRow(t.Context(), "select name_key is not null from platform.instance").
			Scan(&hidden); err != nil {
			t.Fatal(err)
		}

		if hidden == used {
			t.Errorf("install used %v: names hide projects %v, want %v", used, hidden, !used)
		}
	}
}

// databaseOf returns the name of a project's database. url is that of the platform database.
func databaseOf(t *testing.T, url, project string) string {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())

	var key []byte
	if err := conn.QueryRow(t.Context(), "select name_key from platform.instance").Scan(&key); err != nil {
		t.Fatal(err)
	}

	names, err := pgcluster.NewNames(key)
	if err != nil {
		t.Fatal(err)
	}

	return names.Database(uuid.MustParse(project))
}
