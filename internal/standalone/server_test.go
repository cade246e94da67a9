package standalone

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const secret = "a secret of more than thirty-two characters"

// sign returns an HS256 token.
func sign(secret, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))

	return text + "." + encode(mac.Sum(nil))
}

// roles creates the roles, which all databases of the cluster share.
var roles = sync.OnceValue(func() error {
	ctx := context.Background()
	admin, err := pgx.Connect(ctx, pgtest.Server().URL("postgres"))
	if err != nil {
		return err
	}

	_, err = admin.Exec(ctx, `
		create role authenticator login noinherit password 'authentic';
		create role web_anon nologin; create role web_user nologin; create role other nologin;
		grant web_anon, web_user to authenticator;
		alter role web_user set statement_timeout = '7s';
		alter role authenticator set pgrst.server_timing_enabled = 'true';
		alter role authenticator set timezone = 'Asia/Tokyo'`)

	return errors.Join(err, admin.Close(ctx))
})

const fixture = `
	create schema api; create schema second;
	create table api.todos (id int primary key, owner text not null default current_setting('request.jwt.claims')::json->>'sub', task text not null);
	insert into api.todos values (1, 'ann', 'write'), (2, 'ben', 'read');
	alter table api.todos enable row level security;
	create policy own on api.todos to web_user using (owner = current_setting('request.jwt.claims')::json->>'sub');
	create table second.things (id int primary key);
	create function api.setting(name text) returns text language sql stable as 'select current_setting(name, true)';
	create function api.check_all() returns void language plpgsql as $$ begin
		if current_setting('request.path') = '/forbidden' then raise sqlstate 'PT418' using message = 'not this'; end if; end $$;
	grant usage on schema api, second to web_anon, web_user;
	grant all on api.todos, second.things to web_user; grant select on second.things to web_anon`

// client is an HTTP client of a server.
type client struct {
	*testing.T
	url string
}

// do returns the status and the body of a response. headers are name, value, name, value.
func (c client) do(method, path, body string, headers ...string) (int, string, http.Header) {
	c.Helper()

	r, err := http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}

	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}

	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}

	return resp.StatusCode, string(text), resp.Header
}

// until polls a path until the response has a status.
func (c client) until(status int, path string, headers ...string) {
	c.Helper()

	eventually(c.T, func() (bool, string) {
		got, body, _ := c.do("GET", path, "", headers...)
		return got == status, fmt.Sprintf("%s: still status %d, want %d: %s", path, got, status, body)
	})
}

// eventually waits until a condition holds. says is the failure message of a timeout.
func eventually(t *testing.T, is func() (bool, string)) {
	t.Helper()

	last := ""
	t.Cleanup(func() {
		if t.Failed() && last != "" {
			t.Log(last)
		}
	})

	pgtest.Eventually(t, "the condition of the test", func() (holds bool) {
		holds, last = is()
		return holds
	})
	last = ""
}

// doWith returns the status and the body of a client's response.
func doWith(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()

	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}

	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}

	return resp.StatusCode, string(text)
}

// TestChannelDisabled disables the channel, so that only Reload reloads.
func TestChannelDisabled(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = admin.Close(context.Background()) })

	c, err := Load("", []string{"PGRST_DB_URI=" + url, "PGRST_DB_ANON_ROLE=" + admin.Config().User,
		"PGRST_SERVER_HOST=127.0.0.1", "PGRST_SERVER_PORT=0", "PGRST_DB_CHANNEL_ENABLED=false", "PGRST_DB_CONFIG=false",
		"PGRST_DB_POOL_AUTOMATIC_RECOVERY=false"})
	if err != nil {
		t.Fatal(err)
	}

	var log strings.Builder
	s, err := Start(t.Context(), c, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		t.Fatal(err)
	}

	if said := log.String(); strings.Count(said, "\n") != 1 ||
		!strings.Contains(said, "db-pool-automatic-recovery is not supported") || s.AdminURL != "" {
		t.Errorf("got log %q and admin URL %q, want one warning and no URL", said, s.AdminURL)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	api := client{t, s.URL}
	api.until(404, "/new")

	if _, err := admin.Exec(t.Context(),
		"create table new (); grant select on new to public; notify pgrst"); err != nil {
		t.Fatal(err)
	}

	var listening int
	if err := admin.QueryRow(t.Context(),
		"select count(*) from pg_stat_activity where datname = current_database() and query like 'listen%'").
		Scan(&listening); err != nil || listening != 0 {
		t.Errorf("got %d listening connections, %v, want 0", listening, err)
	}
	if status, _, _ := api.do("GET", "/new", ""); status != 404 {
		t.Errorf("before the reload: got status %d, want 404", status)
	}

	s.Reload()
	api.until(200, "/new")
	stop()

	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestServer runs a server with a typical configuration of PostgREST.
func TestServer(t *testing.T) {
	t.Parallel()

	if err := roles(); err != nil {
		t.Fatal(err)
	}

	admin, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	if _, err := admin.Exec(t.Context(), fixture); err != nil {
		t.Fatal(err)
	}

	at := admin.Config()
	c, err := Load(write(t, fmt.Sprintf(`
db-uri = "host=%s port=%d dbname=%s user=authenticator password=authentic keepalives=1 gssencmode=disable"
db-schemas = "api, second"
db-anon-role = "web_anon"
db-pre-request = "api.check_all"
db-channel = "Reload Me"
jwt-role-claim-key = ".app.roles[0]"
server-host = "127.0.0.1"
server-port = 0
server-trace-header = "X-Trace"
admin-server-port = 0
log-level = "crit"
app.settings.greeting = "hello"
`, at.Host, at.Port, at.Database)), []string{"PGRST_JWT_SECRET=" + secret, "PGRST_JWT_AUD=us"})
	if err != nil {
		t.Fatal(err)
	}

	s, err := Start(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	api, watch := client{t, s.URL}, client{t, s.AdminURL}
	watch.until(200, "/ready")

	for _, url := range []string{s.URL, s.AdminURL} {
		checkFraming(t, strings.TrimPrefix(url, "http://"))
	}

	claims := func(role, sub string) string {
		return sign(secret, fmt.Sprintf(`{"app":{"roles":[%q]},"sub":%q,"aud":"us"}`, role, sub))
	}
	ann := "Bearer " + claims("web_user", "ann")
	for _, test := range []struct {
		method, path, body string
		headers            []string
		status             int
		want               string
	}{
		{"GET", "/todos?select=task", "", []string{"Authorization", ann}, 200, `[{"task":"write"}]`},
		{"POST", "/todos", `{"id":3,"task":"rest"}`, []string{"Authorization", ann, "Prefer", "return=representation"},
			201, `"owner":"ann"`},
		{"POST", "/todos", `{"id":4,"owner":"ben","task":"steal"}`, []string{"Authorization", ann}, 403, "42501"},
		{"GET", "/todos", "", nil, 401, "42501"},
		{"GET", "/things", "", []string{"Accept-Profile", "second"}, 200, "[]"},
		{"GET", "/things", "", nil, 404, "PGRST205"},
		{"GET", "/things", "", []string{"Accept-Profile", "third"}, 406, "PGRST106"},
		{"GET", "/forbidden", "", nil, 404, "PGRST205"},
		{"GET", "/", "", nil, 200, `"swagger":"2.0"`},
		{"GET", "/rpc/setting?name=app.settings.greeting", "", nil, 200, `"hello"`},
		{"GET", "/rpc/setting?name=role", "", nil, 200, `"web_anon"`},
		{"GET", "/rpc/setting?name=statement_timeout", "", []string{"Authorization", ann}, 200, `"7s"`},
		{"GET", "/rpc/setting?name=TimeZone", "", nil, 200, `"Asia/Tokyo"`},
		{"GET", "/todos", "", []string{"Authorization", "Bearer " + claims("other", "ann")}, 403, "42501"},
		{"GET", "/todos", "", []string{"Authorization", "Bearer " + claims("nobody", "ann")}, 401, "22023"},
		{"GET", "/todos", "", []string{"Authorization", "Bearer " + claims("none", "ann")}, 401, "22023"},
		{"GET", "/todos", "", []string{"Authorization", "Bearer " + sign(secret, `{"aud":"them"}`)}, 401, "PGRST303"},
		{"GET", "/todos", "",
			[]string{"Authorization", "Bearer " + sign("another secret of more than 32 characters", `{}`)}, 401,
			"PGRST301"},
	} {
		status, body, _ := api.do(test.method, test.path, test.body, test.headers...)
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s: status %d, want %d: %s", test.method, test.path, status, test.status, body)
		}
	}

	if _, _, h := api.do("GET", "/things", "", "Accept-Profile", "second", "X-Trace", "42"); h.Get("X-Trace") != "42" ||
		h.Get("Server-Timing") == "" {
		t.Errorf("the trace header or the settings of the database are missing: %v", h)
	}

	// Changes are noticed after a notification on the channel, and after Reload.
	if _, err := admin.Exec(t.Context(),
		`create table api.forbidden (); create table api.late (); grant select on all tables in schema api to web_anon; notify "Reload Me", 'reload schema'`); err != nil {
		t.Fatal(err)
	}

	api.until(418, "/forbidden")

	if status, body, _ := api.do("GET", "/late", ""); status != 200 {
		t.Errorf("after the notification: got status %d: %s, want 200", status, body)
	}

	if _, err := admin.Exec(t.Context(),
		"create table api.later (); grant select on api.later to web_anon"); err != nil {
		t.Fatal(err)
	}

	s.Reload()
	api.until(200, "/later")

	if status, _, _ := watch.do("GET", "/live", ""); status != 200 {
		t.Errorf("/live: status %d", status)
	}
	if status, body, _ := watch.do("GET", "/metrics", ""); status != 200 ||
		!strings.Contains(body, "pgrst_db_pool_max 10") {
		t.Errorf("/metrics: status %d: %s", status, body)
	}
	if _, err := Start(t.Context(), Config{
		databaseURL: "host=" + at.Host + " user=authenticator password=wrong",
		pool:        1,
		inDatabase:  true,
	}, slog.New(slog.DiscardHandler)); err == nil ||
		strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong password: %v", err)
	}

	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}

	if resp, err := http.Get(s.URL); err == nil {
		resp.Body.Close()
		t.Error("the server still responds")
	}
}

// TestLive checks that the probe connects to the address of the listener. Its URL for clients can
// name another one: localhost need not resolve to an IPv6 address.
func TestLive(t *testing.T) {
	t.Parallel()

	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}

	s := &Server{listener: l, URL: "http://127.0.0.1:0"}
	if !s.live(t.Context()) {
		t.Error("not live while listening")
	}

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if s.live(t.Context()) {
		t.Error("live after the listener closed")
	}
}
