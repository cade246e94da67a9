package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pgtest"
)

// visits is a service that notes the paths of its requests.
type visits struct {
	*httptest.Server
	mu    sync.Mutex
	paths map[string]int
}

func newVisits(t *testing.T) *visits {
	t.Helper()

	v := &visits{paths: map[string]int{}}
	v.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()

		v.paths[r.URL.Path]++
	}))
	t.Cleanup(v.Close)

	return v
}

func (v *visits) count(path string) int {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.paths[path]
}

// TestWaysIntoAProject: a request that SQL leaves is sent once, whichever interface runs the SQL.
func TestWaysIntoAProject(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	cert, certKey := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, certKey)
	a := apitest.New(t, func(c *config.Config) {
		c.PostgresAddr, c.PostgresTLSCert, c.PostgresTLSKey = "127.0.0.1:0", cert, certKey
	})
	s := titlesProjectOf(t, a)
	v := newVisits(t)
	visit := func(path string) string { return fmt.Sprintf("net.http_get('%s/%s')", v.URL, path) }
	run := func(sql string) {
		t.Helper()
		a.Post("/sql", fmt.Sprintf(`{"query": %q, "read_only": false}`, sql)).Want(200)
	}
	arrives := func(path string) {
		t.Helper()
		pgtest.Eventually(t, "a request to "+path, func() bool { return v.count("/"+path) > 0 })
	}

	run("select " + visit("sql"))
	arrives("sql")

	run(`create function public.visit() returns trigger language plpgsql security definer as $$ begin perform net.http_get('` + v.URL +
		`/' || tg_argv[0]); return null; end $$;
		create trigger visit after insert on public.titles for each statement execute function public.visit('row');
		create trigger visit after insert on auth.users for each row execute function public.visit('sign-up');
		create function public.call() returns bigint language sql security definer as $$ select ` + visit("call") + ` $$;
		grant execute on function public.call() to anon`)
	s.want(201, "", "POST", "/titles", `{"id": 1, "title": "a"}`, "apikey: "+s.secret)
	arrives("row")
	s.want(200, "", "POST", "/rpc/call", `{}`, "apikey: "+s.publishable)
	arrives("call")
	a.Anonymous().Send("POST", "/projects/"+s.Project+"/auth/v1/signup",
		`{"email": "ann@example.com", "password": "correct horse battery"}`, "apikey: "+s.publishable).Want(200)
	arrives("sign-up")

	a.Post("/migrations", fmt.Sprintf(`{"migrations": [{"version": "20261127120000", "name": "visit", "sql": %q}]}`,
		"select "+visit("migration"))).Want(200)
	arrives("migration")

	conn, err := pgx.Connect(t.Context(), listenerAddress(a, "owner", cert))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	pgtest.Exec(t, conn, "begin; select "+visit("rolled-back")+"; rollback; select "+visit("session"))
	arrives("session")
	pgtest.Exec(t, conn, "begin; select "+visit("transaction"))
	pgtest.Exec(t, conn, "commit")
	arrives("transaction")

	v.mu.Lock()
	defer v.mu.Unlock()
	for path, n := range v.paths {
		if n != 1 || path == "/rolled-back" {
			t.Errorf("got %d requests to %s", n, path)
		}
	}
}

// TestMessagesBySQL: a socket hears what SQL sends to its topic and its kind of channel.
func TestMessagesBySQL(t *testing.T) {
	t.Parallel()

	s := titlesProject{API: apitest.Shared(t), t: t}
	conn, _, err := websocket.Dial(t.Context(), s.URL+"/projects/"+s.Project+"/realtime/v1/websocket?vsn=1.0.0&apikey="+
		s.key("browser", "publishable"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()

	joined := exchange(t, conn, `{"topic":"realtime:news","event":"phx_join","payload":{"config":{"presence":{"enabled":false}}},"ref":"1"}`)
	if !strings.Contains(joined, `"ok"`) {
		t.Fatalf("got %s", joined)
	}

	s.Post("/sql", `{"query": "select realtime.send('{\"n\": 1}', 'hidden', 'news'); select realtime.send('{\"n\": 2}', 'told', 'news', false)", "read_only": false}`).
		Want(200)
	_, data, err := conn.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"event":"told","payload":{"n": 2, "id": "`, `"meta":{"id":"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("got %s, want %s in it", data, want)
		}
	}
}
