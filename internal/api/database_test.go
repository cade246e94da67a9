package api_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgwire"
)

// tunnelPath is the path of the operation connectDatabase.
func tunnelPath(a *apitest.API) string { return "/projects/" + a.Project + "/database/connect" }

// openTunnel upgrades a connection.
func openTunnel(ctx context.Context, a *apitest.API) (net.Conn, error) {
	c := client.Client{URL: a.URL, Token: a.Token}
	conn, err := c.Upgrade(ctx, tunnelPath(a), pgwire.TunnelProtocol)
	if err != nil {
		return nil, err
	}

	return pgwire.NewTunnel(conn), nil
}

// openSession opens a session of the project's database with startup parameters, each name=value.
func openSession(t *testing.T, a *apitest.API, parameters ...string) (*pgconn.PgConn, error) {
	t.Helper()

	c, err := pgconn.ParseConfig("host=127.0.0.1 user=anyone dbname=anything sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}

	c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return openTunnel(ctx, a) }
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		c.RuntimeParams[name] = value
	}

	conn, err := pgconn.ConnectConfig(t.Context(), c)
	if err == nil {
		t.Cleanup(func() { conn.Close(context.Background()) })
	}

	return conn, err
}

func mustOpenSession(t *testing.T, a *apitest.API, parameters ...string) *pgconn.PgConn {
	t.Helper()

	conn, err := openSession(t, a, parameters...)
	if err != nil {
		t.Fatal(err)
	}

	return conn
}

// result returns the first value of a statement's result.
func result(t *testing.T, conn *pgconn.PgConn, sql string) string {
	t.Helper()

	results, err := conn.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}

	return string(results[len(results)-1].Rows[0][0])
}

// wantEnd waits for the end of a session and fails the test unless the client was told the reason.
func wantEnd(t *testing.T, conn *pgconn.PgConn, code, reason string) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	err := conn.WaitForNotification(ctx)
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code != code || !strings.Contains(e.Message, reason) || e.Severity != "FATAL" {
		t.Errorf("the session ended with %v, want %s with %q", err, code, reason)
	}
}

func TestConnectDatabase(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	upgrade := "Upgrade: socle-postgres/1"
	a.Get(tunnelPath(a)).Want(400).Field("Upgrade")
	a.Send("GET", tunnelPath(a), "", "Upgrade: websocket").Want(400).Field("Upgrade")
	a.Send("GET", "/projects/garbage/database/connect", "", upgrade).Want(400).Field("projectUUID")
	a.Anonymous().Send("GET", tunnelPath(a), "", upgrade).Want(401)
	a.Member(4).Send("GET", tunnelPath(a), "", upgrade).Want(403)
	a.OtherUser().Send("GET", tunnelPath(a), "", upgrade).Want(404)

	request := a.Request("GET", tunnelPath(a), http.NoBody, upgrade, "Connection: Upgrade")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}

	stream := response.Body
	response.Body = http.NoBody
	a.ReadReply(request, response).Want(101)
	stream.Close()

	admin := a.Member(3)
	conn := mustOpenSession(t, admin)
	name := a.DatabaseName()
	if got := result(t, conn, "select session_user || ' ' || current_database()"); got != name+"_owner "+name {
		t.Errorf("got %s, want the owner of %s", got, name)
	}

	if got := result(t, conn, "create table public.books (id int); select count(*) from books"); got != "0" {
		t.Errorf("got %s rows, want 0", got)
	}

	for _, sql := range []string{
		"select * from socle.audit", "select * from socle.audit_pending",
		"select * from storage.files", "create role x", "set role postgres",
	} {
		if _, err := conn.Exec(t.Context(), sql).ReadAll(); err == nil {
			t.Errorf("%s: succeeded", sql)
		}
	}

	conn.Close(t.Context())

	path := "/projects/" + a.Project + "/audit?log=platform&limit=1&order=desc&action="
	until(t, "the end is in the audit log", func() bool {
		return len(values(a.Get(path+"disconnectDatabase").Want(200), "actor")) == 1
	})

	for _, action := range []string{"connectDatabase", "disconnectDatabase"} {
		entry := a.Get(path + action).Want(200)
		if entry.Get("0.actor") != admin.User || entry.Get("0.target") != tunnelPath(a) {
			t.Errorf("%s: got %s", action, entry.Body)
		}
	}

	a.Post("/projects/"+a.Project+"/pause", "").Want(200)
	a.Send("GET", tunnelPath(a), "", upgrade).Want(409).Code("project_paused")
}

// TestExtensionsOfSessions: a client of PostgreSQL's protocol gets the extensions that its project
// may have, also in a transaction, and no others.
func TestExtensionsOfSessions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	conn := mustOpenSession(t, a)
	create := func(sql string) string {
		t.Helper()

		_, err := conn.Exec(t.Context(), sql).ReadAll()
		e, _ := errors.AsType[*pgconn.PgError](err)
		if e != nil {
			return e.Code
		}
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}

		return ""
	}

	if code := create("begin; create extension if not exists citext; create table named (name citext); commit"); code != "" {
		t.Errorf("an extension in a transaction: got %s", code)
	}
	if err := conn.ExecParams(t.Context(), `create extension if not exists "btree_gist" schema extensions`, nil, nil, nil,
		nil).Read().Err; err != nil {
		t.Errorf("an extension by the extended protocol: %v", err)
	}

	for _, sql := range []string{"create extension if not exists dblink", "create extension hstore",
		"do 'begin create extension if not exists hstore; end'"} {
		if code := create(sql); code != "42501" {
			t.Errorf("%s: got %s, want 42501", sql, code)
		}
	}

	got := result(t, conn, "select string_agg(extname || ' ' || extowner::regrole, ', ' order by extname) from pg_extension "+
		"where extname <> 'plpgsql' and extowner <> (select oid from pg_roles where rolname = session_user)")
	if !strings.Contains(got, "citext") || !strings.Contains(got, "btree_gist") || strings.Contains(got, "hstore") {
		t.Errorf("got the extensions %s", got)
	}

	entry := a.Get("/projects/" + a.Project + "/audit?action=createExtension&limit=1&order=desc").Want(200)
	if entry.Get("0.created") != "btree_gist" || entry.Get("0.actor") != a.User {
		t.Errorf("audit: got %s", entry.Body)
	}
}

func TestSessionParameters(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	show := `select concat_ws(' ', current_setting('application_name'), current_setting('search_path'), current_setting('TimeZone'), current_setting('client_encoding'))`
	for _, test := range []struct {
		parameters []string
		want       string // a SQLSTATE: refused
	}{
		{nil, "socle db public,extensions UTC UTF8"},
		{
			[]string{"application_name=test", "options=-c search_path=mine -c work_mem=1MB", "TimeZone=Europe/Paris",
				"client_encoding=latin1"}, "test mine Europe/Paris LATIN1",
		},
		{[]string{"client_encoding=none"}, "22023"},
		{[]string{"options=-c temp_file_limit=-1"}, "42501"},
		{[]string{"options=-c session_preload_libraries=x"}, "42501"},
		{[]string{"options=-c role=nobody"}, "22023"},
		{[]string{"replication=database"}, "0A000"},
	} {
		conn, err := openSession(t, a, test.parameters...)
		if err != nil {
			if pg.State(err) != test.want {
				t.Errorf("%v: got %v, want %s", test.parameters, err, test.want)
			}
			continue
		}

		if got := result(t, conn, show); got != test.want {
			t.Errorf("%v: got %s, want %s", test.parameters, got, test.want)
		}

		conn.Close(t.Context())
	}
}

// TestCancelStatement checks that a client cancels its own statement, also through another server.
func TestCancelStatement(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	for _, through := range []*apitest.API{a, a.StartServer()} {
		current := a
		conn, err := pgconn.ParseConfig("host=127.0.0.1 user=anyone sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}

		conn.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return openTunnel(ctx, current) }
		session, err := pgconn.ConnectConfig(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}

		current = through // of the request to cancel
		failed := make(chan error)
		go func() {
			_, err := session.Exec(t.Context(), "select pg_sleep(600)").ReadAll()
			failed <- err
		}()

		until(t, "the statement runs", func() bool { return sleeping(a) })

		if err := session.CancelRequest(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-failed; pg.State(err) != "57014" {
			t.Errorf("got %v, want the statement to be canceled", err)
		}
		if got := result(t, session, "select 1"); got != "1" {
			t.Errorf("got %s", got)
		}

		session.Close(t.Context())
	}
}

// sleeping reports whether a statement of the project sleeps.
func sleeping(a *apitest.API) bool {
	return apitest.Value[bool](a,
		`select exists (select from pg_stat_activity where datname = $1 and wait_event = 'PgSleep')`, a.DatabaseName())
}

// TestAbandonedTunnel checks that a statement ends with its client.
func TestAbandonedTunnel(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	conn := mustOpenSession(t, a)
	conn.Frontend().SendQuery(&pgproto3.Query{String: `do $$ begin
		loop begin perform pg_sleep(3600); exception when query_canceled then null; end; end loop;
	end $$`})
	if err := conn.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}

	until(t, "the statement runs", func() bool { return sleeping(a) })

	if err := conn.Conn().Close(); err != nil {
		t.Fatal(err)
	}

	until(t, "the statement has ended", func() bool { return !sleeping(a) })
}

// TestTunnelEnds checks that a session ends with a reason when its client loses the right to it,
// the database is replaced, or the project is paused or deleted.
func TestTunnelEnds(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()

	admin := a.Member(3)
	revoked, kept := mustOpenSession(t, admin), mustOpenSession(t, a)
	a.Put("/organizations/"+a.Organization+"/members/"+admin.User, role(4)).Want(200)
	wantEnd(t, revoked, "28000", "role of admin")

	backup := a.Create("/backups", `{}`)
	waitForBackup(t, a, backup).Content("status", "completed")
	restore := a.Post("/backups/"+backup+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string)
	wantEnd(t, kept, "57P01", "is being replaced")
	waitForRestore(t, a, restore, "completed")

	restored := mustOpenSession(t, a)
	a.Post("/projects/"+a.Project+"/pause", "").Want(200)
	wantEnd(t, restored, "57P01", "was closed")
	a.Post("/projects/"+a.Project+"/resume", "").Want(200)

	resumed := mustOpenSession(t, a)
	a.Delete("/projects/" + a.Project).Want(200)
	wantEnd(t, resumed, "57P01", "was closed")

	if _, err := openSession(t, a); err == nil {
		t.Error("a deleted project has sessions")
	}
}

// rowsForever reads the same row for ever.
type rowsForever struct{}

func (rowsForever) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = "1\n"[i%2]
	}

	return len(b) / 2 * 2, nil
}

// TestTerminatedCopy checks that a client that sends rows learns why its session has ended.
func TestTerminatedCopy(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	result(t, mustOpenSession(t, a), "create table numbers (n int); select 1")

	for range 10 {
		conn := mustOpenSession(t, a)
		pid := result(t, conn, "select pg_backend_pid()")

		copied := make(chan error, 1)
		go func() {
			_, err := conn.CopyFrom(t.Context(), rowsForever{}, "copy numbers from stdin")
			copied <- err
		}()

		until(t, "the copy runs", func() bool {
			return apitest.Value[bool](a, `select exists (select from pg_stat_progress_copy
				where pid = $1::text::int and tuples_processed > 10000)`, pid)
		})
		apitest.Value[bool](a, `select pg_terminate_backend($1::text::int)`, pid)

		if err := <-copied; pg.State(err) != "57P01" {
			t.Errorf("got %v, want the termination", err)
		}
	}
}

// TestTooManySessions checks the bounds of sessions, and of connections that have none yet.
func TestTooManySessions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	const maxSessions, maxStarting = 10, 32

	for range maxSessions {
		mustOpenSession(t, a)
	}
	if _, err := openSession(t, a); pg.State(err) != "53300" {
		t.Errorf("got %v, want too many sessions", err)
	}

	var open []net.Conn
	for range maxStarting {
		conn, err := openTunnel(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}

	a.Send("GET", tunnelPath(a), "", "Upgrade: socle-postgres/1").Want(429).Code("too_many_connections")

	for _, conn := range open {
		conn.Close()
	}

	until(t, "a connection is admitted again", func() bool {
		conn, err := openTunnel(t.Context(), a)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// TestFullDatabaseSession checks that sessions of a full database begin read-only.
func TestFullDatabaseSession(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	administrator := a.Administrator()
	a.CreateTable("orders", "note text")
	setDatabaseQuota(t, administrator, a, true)

	conn := mustOpenSession(t, a)
	if _, err := conn.Exec(t.Context(), "create table more ()").ReadAll(); pg.State(err) != "25006" {
		t.Errorf("got %v, want a read-only transaction", err)
	}
	for _, sql := range []string{"set default_transaction_read_only = off", "drop table orders"} {
		if _, err := conn.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}

	setDatabaseQuota(t, administrator, a, false)

	if _, err := mustOpenSession(t, a).Exec(t.Context(), "create table more ()").ReadAll(); err != nil {
		t.Error(err)
	}
}
