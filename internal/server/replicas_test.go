package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/pgtest"
)

const readReplica = "Prefer: read=replica"

// replicated is a server on a PostgreSQL with a standby, and a project.
type replicated struct {
	*apitest.API
	standby *pgserver.Server
	key     string
}

func startReplicated(t *testing.T) *replicated {
	t.Helper()

	primary, standby := pgtest.Replicated(t)
	execAt(t, primary.URL("postgres"), `create database socle`)

	a := apitest.Empty(t, func(c *config.Config) {
		c.DatabaseURL, c.ReplicaURL = config.Secret(primary.URL("socle")), config.Secret(standby.URL("socle"))
	})
	a = a.SignUp("user")
	a.Project = a.CreateProject("project")
	a.Post("/sql", `{"read_only": false, "query": "create table notes (id int primary key, text text);`+
		` create function place() returns text stable language sql as $$select`+
		` case when pg_catalog.pg_is_in_recovery() then 'standby' else 'primary' end$$;`+
		` create sequence numbers;`+
		` create function number() returns bigint volatile language sql as $$select nextval('numbers')$$;`+
		` grant all on all tables in schema public to anon"}`).Want(200)

	key := a.Post("/projects/"+a.Project+"/keys", `{"name": "server", "kind": "secret"}`).Want(201).Metadata("key")
	return &replicated{a, standby, key.(string)}
}

// execAt executes a statement on a PostgreSQL.
func execAt(t *testing.T, url, sql string) {
	t.Helper()

	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}

	pgtest.Exec(t, pgtest.Connect(t, config), sql)
}

func (r *replicated) rows(method, path, body string, headers ...string) *apitest.Reply {
	return r.Anonymous().Send(method, "/projects/"+r.Project+"/rest/v1/"+path, body,
		append(headers, "apikey: "+r.key)...)
}

// place returns where a read was answered.
func (r *replicated) place(headers ...string) string {
	return strings.Trim(string(r.rows("GET", "rpc/place", "", headers...).Want(200).Body), `"`)
}

func (r *replicated) awaitPlace(t *testing.T, want string, headers ...string) {
	t.Helper()

	pgtest.Eventually(t, "the "+want+" answers", func() bool { return r.place(headers...) == want })
}

// TestReadReplica reads from a standby: only on request, each write that the reader names, from the
// primary whatever the standby cannot answer, and without an error when it stops.
func TestReadReplica(t *testing.T) {
	t.Parallel()

	r := startReplicated(t)
	r.awaitPlace(t, "standby", readReplica)

	if got := r.place(); got != "primary" {
		t.Errorf("without a preference: got the %s", got)
	}
	applied := r.rows("GET", "notes", "", readReplica).Want(200).Header.Get("Preference-Applied")
	if applied != "read=replica" {
		t.Errorf("got Preference-Applied %q", applied)
	}
	if got := r.rows("POST", "notes", `{"id": 0}`).Want(201).Header.Get("X-Socle-Position"); got != "" {
		t.Errorf("a write without a preference: got the position %q", got)
	}

	standbys := 0
	for i := 1; i <= 50; i++ {
		written := r.rows("POST", "notes", fmt.Sprintf(`{"id": %d, "text": "x"}`, i), readReplica).Want(201)
		read := r.rows("GET", fmt.Sprintf("notes?id=eq.%d&select=id", i), "", readReplica,
			"X-Socle-Position: "+written.Header.Get("X-Socle-Position")).Want(200)
		if want := fmt.Sprintf(`[{"id":%d}]`, i); string(read.Body) != want {
			t.Fatalf("got %s, want the own write %s", read.Body, want)
		}
		if read.Header.Get("Preference-Applied") == "read=replica" {
			standbys++
		}
	}
	if standbys == 0 {
		t.Error("no read of an own write was answered by the standby")
	}

	r.testPaused(t)
	r.testRefused(t)

	r.Put("/projects/"+r.Project+"/rest-settings", `{"read_replica": true}`).Want(200).Content("readReplica", true)
	r.awaitPlace(t, "standby")
	if got := r.place("Prefer: read=primary"); got != "primary" {
		t.Errorf("with a preference for the primary: got the %s", got)
	}

	stopped := make(chan error)
	go func() { stopped <- r.standby.Stop(t.Context()) }()
	for done := false; !done; {
		r.rows("GET", "notes?id=eq.7", "").Want(200)
		select {
		case err := <-stopped:
			if done = true; err != nil {
				t.Error(err)
			}
		default:
		}
	}
	if got := r.place(); got != "primary" {
		t.Errorf("without a standby: got the %s", got)
	}
}

// testPaused reads while the standby does not replay: it answers with what it has, but not for a
// write that it lacks, nor by an older schema.
func (r *replicated) testPaused(t *testing.T) {
	t.Helper()

	url := r.standby.URL("postgres")
	execAt(t, url, `select pg_wal_replay_pause()`)
	defer execAt(t, url, `select pg_wal_replay_resume()`)

	written := r.rows("POST", "notes", `{"id": 100}`, readReplica).Want(201)
	at := "X-Socle-Position: " + written.Header.Get("X-Socle-Position")
	stale := r.rows("GET", "notes?id=eq.100&select=id", "", readReplica).Want(200)
	if stale.Header.Get("Preference-Applied") == "read=replica" && string(stale.Body) != "[]" {
		t.Errorf("a standby that does not replay: got %s", stale.Body)
	}
	if body := r.rows("GET", "notes?id=eq.100&select=id", "", readReplica, at).Want(200).Body; string(body) == "[]" {
		t.Error("a read of a write that the standby lacks did not find it")
	}
	if got := r.place(readReplica, "X-Socle-Position: nonsense"); got != "primary" {
		t.Errorf("an invalid position: got the %s", got)
	}

	r.Post("/sql", `{"read_only": false, "query": "alter table notes add column more int default 5"}`).Want(200)
	for range 2 {
		body := r.rows("GET", "notes?id=eq.7&select=more", "", readReplica).Want(200).Body
		if string(body) != `[{"more":5}]` {
			t.Errorf("a column that the standby lacks: got %s", body)
		}
	}
}

// testRefused: what a standby refuses is answered as by the primary.
func (r *replicated) testRefused(t *testing.T) {
	t.Helper()

	for _, path := range []string{"rpc/number", "nothing", "notes?id=eq.x", "notes?nothing=eq.1"} {
		want := r.rows("GET", path, "")
		got := r.rows("GET", path, "", readReplica)
		if got.Status != want.Status || string(got.Body) != string(want.Body) {
			t.Errorf("%s: got %d %s, want %d %s", path, got.Status, got.Body, want.Status, want.Body)
		}
	}
}
