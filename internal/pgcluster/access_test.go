package pgcluster

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestCloseDatabasesKeepsOthersAccess closes databases beside the logins of other programs, such as
// Patroni's rewind user: they connect as before, at once and if they were created later.
func TestCloseDatabasesKeepsOthersAccess(t *testing.T) {
	t.Parallel()

	newDatabase(t, newCluster(t, 4))
	platform := pgConnect(t, pgtest.URL(t))
	database := platform.Config().Database

	early := otherLogin(t, platform, "early")
	log := &bytes.Buffer{}
	closeAll := func() {
		t.Helper()

		if err := CloseDatabases(t.Context(), platform, slog.New(slog.NewTextHandler(log, nil)),
			"postgres", "template1", database); err != nil {
			t.Fatal(err)
		}
	}

	closeAll()
	late := otherLogin(t, platform, "late")
	if got := connectState(t, late, "postgres"); got != "42501" {
		t.Fatalf("a new login before the next start: got %q, want 42501", got)
	}

	found, err := Admissions(t.Context(), platform, database)
	if err != nil || len(found) != 1 || !slices.Contains(found[0].Logins, early.User) ||
		!slices.Contains(found[0].Missing, late.User) {
		t.Errorf("got admissions %v, %v", found, err)
	}

	closeAll()
	for _, login := range []*pgx.ConnConfig{early, late} {
		for _, name := range []string{"postgres", "template1", database} {
			if got := connectState(t, login, name); got != "" {
				t.Errorf("%s connects to %s: got %s", login.User, name, got)
			}
			if !strings.Contains(log.String(), login.User) {
				t.Errorf("the log does not name %s: %s", login.User, log)
			}
		}

		if !pgtest.Value[bool](t, platform, `select has_database_privilege($1, $2, 'temporary')`, login.User, database) {
			t.Errorf("%s lost TEMPORARY", login.User)
		}
	}

	if pgtest.Value[bool](t, platform, `select has_database_privilege('public', $1, 'connect')`, database) {
		t.Error("the database is open to PUBLIC")
	}
}

// TestCloseDatabasesRespectsAdministrators tests whom a start must not admit: a login that an
// administrator has excluded since, and anyone in a database that was closed before Socle came.
func TestCloseDatabasesRespectsAdministrators(t *testing.T) {
	t.Parallel()

	platform := pgConnect(t, pgtest.URL(t))
	database := platform.Config().Database
	excluded := otherLogin(t, platform, "excluded")
	discard := slog.New(slog.DiscardHandler)

	if err := CloseDatabases(t.Context(), platform, discard, database); err != nil {
		t.Fatal(err)
	}

	pgtest.Exec(t, platform, "revoke all on database "+pg.Quote(database)+" from "+excluded.User)
	if err := CloseDatabases(t.Context(), platform, discard, database); err != nil {
		t.Fatal(err)
	}

	if got := connectState(t, excluded, database); got != "42501" {
		t.Errorf("an excluded login after the next start: got %q, want 42501", got)
	}

	pgtest.Exec(t, platform, "alter database "+pg.Quote(database)+" reset socle.access")
	for range 2 {
		found, err := pg.All[databaseAccess](t.Context(), platform, selectAccess,
			pgx.StrictNamedArgs{"names": []string{database}})
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}

		found[0].Managed = false
		if err := found[0].closeToPublic(t.Context(), platform, discard); err != nil {
			t.Fatal(err)
		}
	}

	if err := CloseDatabases(t.Context(), platform, discard, database); err != nil {
		t.Fatal(err)
	}
	if got := connectState(t, excluded, database); got != "42501" {
		t.Errorf("a login of a database closed before: got %q, want 42501", got)
	}
}

// TestCloseDatabasesAfterOldRelease closes a database that a release without the record had closed,
// so its logins had lost their access.
func TestCloseDatabasesAfterOldRelease(t *testing.T) {
	t.Parallel()

	newDatabase(t, newCluster(t, 4)) // shows that Socle has worked here
	platform := pgConnect(t, pgtest.URL(t))
	database := platform.Config().Database
	lost := otherLogin(t, platform, "lost")

	pgtest.Exec(t, platform, "revoke all on database "+pg.Quote(database)+" from public")
	if err := CloseDatabases(t.Context(), platform, slog.New(slog.DiscardHandler), database); err != nil {
		t.Fatal(err)
	}

	if got := connectState(t, lost, database); got != "" {
		t.Errorf("got %s, want a connection", got)
	}
}

// TestCloseDatabasesGrantsNoMore tests logins that need no grant: superusers, projects' own logins,
// and members of a role with the privileges.
func TestCloseDatabasesGrantsNoMore(t *testing.T) {
	t.Parallel()

	c := newCluster(t, 4)
	project := newDatabase(t, c)
	platform := pgConnect(t, pgtest.URL(t))
	database := platform.Config().Database
	member, super := otherLogin(t, platform, "member"), otherLogin(t, platform, "super")
	group := member.User + "_group"
	pgtest.Exec(t, platform, "create role "+group+"; grant connect, temporary on database "+pg.Quote(database)+
		" to "+group+"; grant "+group+" to "+member.User+"; alter role "+super.User+" superuser")
	t.Cleanup(func() { dropLogin(t, platform, group) })

	if err := CloseDatabases(t.Context(), platform, slog.New(slog.DiscardHandler), database); err != nil {
		t.Fatal(err)
	}

	granted := pgtest.Value[[]string](t, platform, `select array(select a.grantee::regrole::text from pg_database d
		cross join aclexplode(d.datacl) a where d.datname = current_database())`)
	for _, name := range []string{member.User, super.User, c.OwnerLogin(project), c.Login(project, Request)} {
		if slices.Contains(granted, name) || slices.Contains(granted, pg.Quote(name)) {
			t.Errorf("%s was granted privileges: %v", name, granted)
		}
	}
}

// pgConnect connects to a database as the superuser.
func pgConnect(t *testing.T, url string) *pgx.Conn {
	t.Helper()

	c, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}

	return pgtest.Connect(t, c)
}

// otherLogin creates the login of another program, which is dropped when the test ends.
func otherLogin(t *testing.T, admin *pgx.Conn, name string) *pgx.ConnConfig {
	t.Helper()

	c := admin.Config().Copy()
	c.User, c.Password = "other_"+name+"_"+uuid.NewString()[24:], "password"
	pgtest.Exec(t, admin, "create role "+c.User+" login password 'password'")
	t.Cleanup(func() { dropLogin(t, admin, c.User) })

	return c
}

// dropLogin drops a role with its privileges on databases. Other tests may grant it some meanwhile.
func dropLogin(t *testing.T, admin *pgx.Conn, name string) {
	t.Helper()

	var err error
	for range maxConflicts {
		err = ExecBatch(context.WithoutCancel(t.Context()), admin,
			[]string{"drop owned by " + name, "drop role " + name})
		if pg.State(err) != "2BP01" { // dependent_objects_still_exist
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// connectState returns the SQLSTATE of connecting to a database, "" for success.
func connectState(t *testing.T, c *pgx.ConnConfig, database string) string {
	t.Helper()

	c = c.Copy()
	c.Database = database
	conn, err := pgx.ConnectConfig(t.Context(), c)
	if err != nil {
		return pg.State(err)
	}
	_ = conn.Close(t.Context())

	return ""
}
