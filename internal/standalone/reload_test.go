package standalone

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

// database is a database with a login of its own, whose settings no other test changes.
type database struct {
	*testing.T
	admin *pgx.Conn
	login string
}

// newDatabase creates a database with the fixture and the login of the test.
func newDatabase(t *testing.T, login string) database {
	t.Helper()

	if err := roles(); err != nil {
		t.Fatal(err)
	}

	admin, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	d := database{t, admin, login}
	d.exec(fmt.Sprintf("create role %s login noinherit password 'authentic'; grant web_anon, web_user to %[1]s", login))
	d.exec(fixture)

	return d
}

func (d database) exec(sql string) {
	d.Helper()

	if _, err := d.admin.Exec(d.Context(), sql); err != nil {
		d.Fatal(err)
	}
}

// config returns the text of a configuration file with the database and the test's settings.
func (d database) config(lines string) string {
	at := d.admin.Config()
	return fmt.Sprintf("db-uri = \"host=%s port=%d dbname=%s user=%s password=authentic\"\ndb-schemas = \"api\"\ndb-anon-role = \"web_anon\"\nserver-host = \"127.0.0.1\"\nserver-port = 0\njwt-secret = \"%s\"\n%s",
		at.Host, at.Port, at.Database, d.login, secret, lines)
}

// log records log output.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.String()
}

// run starts a server with a configuration file until the test ends, and its log at a level.
func run(t *testing.T, file string, level ...*slog.LevelVar) (*Server, *log) {
	t.Helper()

	c, err := Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}

	said := &log{}
	options := &slog.HandlerOptions{}
	for _, l := range level {
		c.Level, options.Level = l, l
	}

	s, err := Start(t.Context(), c, slog.New(slog.NewTextHandler(said, options)))
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})

	return s, said
}

// untilBody polls a path until the body contains a text.
func (c client) untilBody(text, path string, headers ...string) {
	c.Helper()

	eventually(c.T, func() (bool, string) {
		status, body, _ := c.do("GET", path, "", headers...)
		return strings.Contains(body, text), fmt.Sprint(path, ": status ", status, ": ", body)
	})
}

// TestReloadConfig checks that the configuration in file and database is reloaded on a notification
// and by ReloadConfig, and that mistakes change nothing.
func TestReloadConfig(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, "reloader")
	d.exec(`create function api.configure() returns void language sql as $$ select set_config('pgrst.db_max_rows', '1', true), set_config('pgrst.server_trace_header', 'X-One', true) $$;
		create table api.numbers as select generate_series(1, 5) n; grant select on api.numbers to web_anon;
		create table second.others (); grant select on second.others to web_anon; grant usage on schema api to reloader`)

	file := write(t, d.config(`db-pre-config = "api.configure"`))
	s, said := run(t, file, new(slog.LevelVar))
	api := client{t, s.URL}
	api.until(200, "/numbers")

	if _, body, h := api.do("GET", "/numbers", "", "X-One", "1"); body != `[{"n":1}]` || h.Get("X-One") != "1" {
		t.Errorf("the settings of the function are not effective: %s, %v", body, h)
	}

	// ALTER ROLE overrides the function, the file changes too, and other schemas are exposed.
	d.exec(`alter role reloader set pgrst.db_max_rows = '2'; notify pgrst, 'reload config'`)
	api.untilBody(`{"n":2}]`, "/numbers")

	if err := os.WriteFile(file,
		[]byte(
			strings.Replace(d.config(`db-pre-config = "configure"`), `"api"`, `"api, second"`, 1)+
				"\napp.settings.x = \"new\"\nclient-error-verbosity = \"minimal\"\n",
		), 0o600); err != nil {
		t.Fatal(err)
	}

	s.ReloadConfig()
	api.until(200, "/others", "Accept-Profile", "second")

	if _, body, _ := api.do("GET", "/rpc/setting?name=app.settings.x", ""); body != `"new"` {
		t.Errorf("got parameter %s", body)
	}
	if status, body, _ := api.do("GET", "/none", ""); status != 404 ||
		body != `{"code":"PGRST205","message":"Could not find the table 'api.none' in the schema cache"}` {
		t.Errorf("minimal error: got %d %s", status, body)
	}

	// Mistakes are logged, and the former configuration stays.
	d.exec(`alter role reloader set pgrst.db_max_rows = 'many'; notify pgrst, 'reload config'`)
	eventually(t, func() (bool, string) {
		return strings.Contains(said.String(), "keeping the former one"), said.String()
	})

	if status, body, _ := api.do("GET", "/numbers", ""); status != 200 || !strings.Contains(body, `{"n":2}]`) {
		t.Errorf("after an invalid configuration: got %d %s", status, body)
	}
	if strings.Contains(said.String(), secret) || strings.Contains(said.String(), "authentic ") {
		t.Error("the log contains a secret")
	}

	// The log level changes too.
	d.exec(`alter role reloader reset pgrst.db_max_rows`)
	if err := os.WriteFile(file, []byte(d.config("log-level = \"info\"")), 0o600); err != nil {
		t.Fatal(err)
	}

	s.ReloadConfig()
	eventually(t, func() (bool, string) {
		return strings.Contains(said.String(), "configuration reloaded"), said.String()
	})

	// Schema changes are still noticed.
	d.exec(`create table api.late (); grant select on api.late to web_anon; notify pgrst, 'reload schema'`)
	api.until(200, "/late")
}

// TestRoleSettings checks that settings of a role apply to its requests, and those of a function to
// its calls.
func TestRoleSettings(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, "setter")
	d.exec(`create role slow nologin; create role quick nologin; grant slow, quick to setter; grant usage on schema api to slow, quick; grant select on api.todos to quick;
		alter role quick set statement_timeout = '200ms'; alter role quick set default_transaction_isolation = 'serializable'; alter role quick set work_mem = '5MB';
		alter role quick set log_min_duration_statement = '12s'; alter role quick set search_path = 'nowhere'; grant set on parameter log_min_duration_statement to setter;
		alter role slow set log_min_duration_statement = '9s';
		create function api.rest() returns void language sql as 'select pg_sleep(30)';
		create function api.patient() returns text language sql stable set statement_timeout = '20s' set work_mem = '6MB' set search_path = '' as $$ select current_setting('statement_timeout') $$;
		create function api.hasty() returns void language sql set statement_timeout = '150ms' as 'select pg_sleep(30)';
		create function api.loose() returns text language sql stable set default_transaction_isolation = 'repeatable read' as $$ select current_setting('transaction_isolation') $$`)

	s, _ := run(t, write(t, d.config("")))
	api := client{t, s.URL}
	quick := []string{"Authorization", "Bearer " + sign(secret, `{"role":"quick"}`)}
	slow := []string{"Authorization", "Bearer " + sign(secret, `{"role":"slow"}`)}
	api.untilBody(`"200ms"`, "/rpc/setting?name=statement_timeout", quick...)

	for _, test := range []struct {
		path    string
		headers []string
		status  int
		want    string
	}{
		{"/rpc/setting?name=statement_timeout", slow, 200, `"0"`},
		{"/rpc/setting?name=transaction_isolation", quick, 200, `"serializable"`},
		{"/rpc/setting?name=transaction_isolation", slow, 200, `"read committed"`},
		{"/todos", quick, 200, "[]"},
		{"/rpc/setting?name=work_mem", quick, 200, `"5MB"`},
		{"/rpc/setting?name=log_min_duration_statement", quick, 200, `"12s"`}, // the login may set it
		{"/rpc/setting?name=search_path", quick, 200, `api`},                  // set by the request
		{"/rpc/patient", quick, 200, `"20s"`},
		{"/rpc/loose", slow, 200, `"repeatable read"`},
	} {
		if status, body, _ := api.do("GET", test.path, "", test.headers...); status != test.status ||
			!strings.Contains(body, test.want) {
			t.Errorf("%s: %d %s, want %d %s", test.path, status, body, test.status, test.want)
		}
	}

	for path, who := range map[string][]string{"/rpc/rest": quick, "/rpc/hasty": slow} {
		if status, body, _ := api.do("POST", path, "", who...); status != 500 ||
			body !=
				`{"code":"57014","details":null,"hint":null,"message":"canceling statement due to statement timeout"}` {
			t.Errorf("%s: %d %s, want the statement timeout", path, status, body)
		}
	}

	d.exec("alter role quick set statement_timeout = '17s'")
	s.Reload()
	api.untilBody(`"17s"`, "/rpc/setting?name=statement_timeout", quick...)
}

// TestHoistedSettings checks that hoisted settings of functions apply to the whole transaction.
func TestHoistedSettings(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, "hoister")
	d.exec(`create function api.patient() returns table (timeout text, memory text) language sql stable set statement_timeout = '20s' set work_mem = '6MB' as $$ select 'x', 'y' $$;
		create view api.outside as select current_setting('work_mem') m; grant select on api.outside to web_anon;
		create function api.seen() returns setof api.outside language sql stable set statement_timeout = '20s' set work_mem = '6MB' as 'select * from api.outside'`)

	s, _ := run(t, write(t, d.config(`db-hoisted-tx-settings = "work_mem"`)))
	api := client{t, s.URL}
	api.until(200, "/outside")

	c, err := s.current.Load().cache.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	for name, all := range c.Functions {
		for _, f := range all {
			if name.Name == "seen" && (len(f.Settings) != 1 || f.Settings["work_mem"] != "6MB") {
				t.Errorf("hoisted of seen: %v, want work_mem alone", f.Settings)
			}
		}
	}
}

// TestUnprepared checks that connections keep no prepared statements.
func TestUnprepared(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, "unprepared")
	d.exec(`create function api.kept() returns bigint language sql as 'select count(*) from pg_prepared_statements'; create table api.counts (id int primary key, n int); grant all on api.counts to web_anon`)
	s, _ := run(t,
		write(t,
			d.config("db-prepared-statements = false\ndb-pool = 1\ndb-channel-enabled = false\ndb-tx-end = \"commit-allow-override\"")))

	api := client{t, s.URL}
	api.until(200, "/counts")

	for i := range 3 {
		if status, body, _ := api.do("POST", "/counts?select=id", fmt.Sprintf(`{"id":%d,"n":1}`, i), "Prefer",
			"return=representation"); status != 201 || body != fmt.Sprintf(`[{"id":%d}]`, i) {
			t.Errorf("insert: %d %s", status, body)
		}
		if status, body, h := api.do("GET", fmt.Sprintf("/counts?id=eq.%d&n=gt.0", i), "", "Prefer", "count=exact",
			"Accept", "application/vnd.pgrst.object+json"); status != 200 ||
			body != fmt.Sprintf(`{"id":%d,"n":1}`, i) || h.Get("Content-Range") != "0-0/1" {
			t.Errorf("read: %d %s", status, body)
		}
		if status, _, _ := api.do("PATCH", "/counts", `{"n":2}`, "Prefer",
			"handling=strict, max-affected=0"); status != 400 {
			t.Errorf("rolled-back write: got %d", status)
		}
		if status, body, _ := api.do("GET", "/counts?id=eq.x", ""); status != 400 || !strings.Contains(body, "22P02") {
			t.Errorf("an error: %d %s", status, body)
		}
		if status, _, _ := api.do("DELETE", "/counts", "", "Prefer", "tx=rollback"); status != 204 {
			t.Errorf("a rollback: %d", status)
		}
		if status, body, _ := api.do("POST", "/rpc/kept", ""); status != 200 || body != "0" {
			t.Errorf("prepared statements: got %d %s", status, body)
		}
	}
}

// TestAcquisitionTimeout checks that a request waits for a connection as long as configured.
func TestAcquisitionTimeout(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, "waiter")
	d.exec(`create table api.locked (); grant all on api.locked to web_anon; grant select on api.locked to web_user`)
	s, _ := run(t, write(t, d.config("db-pool = 1\ndb-pool-acquisition-timeout = 1\ndb-channel-enabled = false")))
	api := client{t, s.URL}
	api.until(200, "/locked")

	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	status, body, _ := api.do("GET", "/locked", "")
	conn.Release()

	if status != 504 ||
		body !=
			`{"code":"PGRST003","details":null,"hint":null,"message":"Timed out acquiring connection from connection pool."}` {
		t.Errorf("without a free connection: got %d %s", status, body)
	}

	api.until(200, "/locked")
}

// TestSockets serves on Unix sockets and checks the admin endpoints.
func TestSockets(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, "socketeer")

	folder, err := os.MkdirTemp("", "socle") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	open, watch := filepath.Join(folder, "api"), filepath.Join(folder, "admin")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: open, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}

	stale.SetUnlinkOnClose(false)
	_ = stale.Close()

	file := write(t,
		d.config(
			fmt.Sprintf(
				"server-unix-socket = \"%s\"\nserver-unix-socket-mode = \"600\"\nadmin-server-unix-socket = \"%s\"\nadmin-server-unix-socket-mode = \"0666\"\napp.settings.key = \"hidden\"", open, watch,
			),
		))

	s, _ := run(t, file)
	if s.URL != "unix:"+open || s.AdminURL != "unix:"+watch {
		t.Errorf("got addresses %s and %s", s.URL, s.AdminURL)
	}

	for path, mode := range map[string]os.FileMode{open: 0o600, watch: 0o666} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want mode %o", path, info.Mode(), err, mode)
		}
	}

	ask := func(socket, path string) (int, string) {
		t.Helper()

		through := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(
			ctx context.Context, _, _ string,
		) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}

		status, body := doWith(t, through, "http://local"+path)

		return status, body
	}

	eventually(t, func() (bool, string) {
		status, body := ask(watch, "/ready")
		return status == 200, fmt.Sprint(status, body)
	})

	if status, body := ask(open, "/rpc/setting?name=app.settings.key"); status != 200 || body != `"hidden"` {
		t.Errorf("over the socket: got %d %s", status, body)
	}
	if status, _ := ask(watch, "/live"); status != 200 {
		t.Errorf("/live: %d", status)
	}
	if status, body := ask(watch, "/metrics"); status != 200 || !strings.Contains(body, "pgrst_db_pool_available") {
		t.Errorf("/metrics: %d %s", status, body)
	}

	status, body := ask(watch, "/config")
	if status != 200 || !strings.Contains(body, "db-schemas = \"api\"\n") ||
		!strings.Contains(body, "server-unix-socket-mode = \"600\"\n") ||
		!strings.Contains(body, "db-pool = \"10\"\n") || strings.Contains(body, secret) ||
		strings.Contains(body, "authentic") || strings.Contains(body, "hidden") {
		t.Errorf("/config: %d %s", status, body)
	}

	status, body = ask(watch, "/schema_cache")

	var shown struct {
		Schemas   []string
		Relations []struct{ Schema, Name string }
		Functions []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(body), &shown); err != nil || status != 200 || shown.Schemas[0] != "api" ||
		len(shown.Relations) != 1 || shown.Relations[0].Name != "todos" || len(shown.Functions) != 2 {
		t.Errorf("/schema_cache: %d %v %+v", status, err, shown)
	}
	if status, _ := ask(watch, "/none"); status != 404 {
		t.Errorf("/none: %d", status)
	}

	c, err := Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}

	if second, err := Start(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "another server listens there") {
		t.Errorf("a second server on the socket: %v, %v", second, err)
	}
}
