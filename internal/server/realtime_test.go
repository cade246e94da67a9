package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

// todosSchema is the schema of realtime.mjs.
const todosSchema = `create table public.todos (id int primary key, owner text, title text, size bigint, tags text[]); ` +
	`create policy own on public.todos to authenticated using (owner = auth.jwt() ->> 'sub'); ` +
	`grant all on public.todos to anon, authenticated, service_role; ` +
	`alter publication supabase_realtime add table public.todos; ` +
	`create policy receive on realtime.messages for select to authenticated ` +
	`using (realtime.topic() = 'vault:' || (auth.jwt() ->> 'sub')); ` +
	`create function public.tell(topic text, event text) returns void language sql ` +
	`as $$ select realtime.send('{\"text\": \"é ✓\"}', event, topic) $$; ` +
	`create table public.notes (id text primary key, body text); ` +
	`alter table public.notes disable row level security; grant all on public.notes to service_role; ` +
	`create function public.note() returns trigger language plpgsql security definer as $$ begin ` +
	`perform realtime.broadcast_changes('vault:ann', tg_op, tg_op, tg_table_name, tg_table_schema, new, old); ` +
	`return null; end $$; ` +
	`create trigger note after insert on public.notes for each row execute function public.note(); ` +
	`grant execute on function public.tell(text, text) to service_role`

// TestRealtimeByClient has browsers and a server talk over channels by supabase-js.
func TestRealtimeByClient(t *testing.T) {
	t.Parallel()

	s := titlesProject{API: apitest.Shared(t), t: t}
	s.Post("/sql", `{"read_only": false, "query": "`+todosSchema+`"}`).Want(200)
	runNode(t, clients, []string{
		"SOCLE_PROJECT=" + s.URL + "/projects/" + s.Project,
		"SOCLE_PUBLISHABLE=" + s.key("browser", "publishable"),
		"SOCLE_SECRET=" + s.key("server", "secret"),
		"SOCLE_JWT_SECRET=" + s.Get("/projects/"+s.Project+"/jwt-secret").Want(200).Get("secret").(string),
	}, "--experimental-websocket", "realtime.mjs")
}

// TestRealtime checks a socket from its handshake to its entry in the log.
func TestRealtime(t *testing.T) {
	t.Parallel()

	s := titlesProject{API: apitest.Shared(t), t: t}
	root, key := s.URL+"/projects/"+s.Project+"/realtime/v1", s.key("browser", "publishable")
	for path, want := range map[string]int{
		root + "/websocket?apikey=wrong":                 http.StatusUnauthorized,
		root + "/websocket?apikey=" + key:                http.StatusBadRequest,
		root + "/other":                                  http.StatusNotFound,
		strings.Replace(root, s.Project, "x", 1):         http.StatusUnauthorized,
		root + "/api/broadcast/x/events/e?apikey=" + key: http.StatusNotFound,
	} {
		resp, err := http.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ Error string }
		err = json.NewDecoder(resp.Body).Decode(&body)
		resp.Body.Close()
		if resp.StatusCode != want || err != nil || body.Error == "" {
			t.Errorf("%s: got %d %+v, %v, want %d", path, resp.StatusCode, body, err, want)
		}
	}

	conn, _, err := websocket.Dial(t.Context(), root+"/websocket?apikey="+key+"&vsn=2.0.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()

	if got := exchange(t, conn, `["1","1","realtime:x","phx_join",{"config":{"presence":{"enabled":false}}}]`); !strings.Contains(got, `"ok"`) {
		t.Errorf("got %s", got)
	}

	s.Post("/projects/"+s.Project+"/pause", "").Want(200)
	ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	defer cancel()
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != websocket.StatusPolicyViolation ||
		!strings.Contains(err.Error(), "the project is paused") {
		t.Errorf("a paused project: got %v", err)
	}

	s.Post("/projects/"+s.Project+"/resume", "").Want(200)
	var entries []any
	eventually(t, "the socket is in the log", func() bool {
		entries = s.Get("/projects/" + s.Project + "/requests?status=101").Want(200).Get("").([]any)
		return len(entries) > 0
	})
	text, _ := json.Marshal(entries)
	for _, want := range []string{`"route":"/realtime/v1/websocket"`, `"errorMessage":"the project is paused"`,
		`"query":"apikey=…\u0026vsn=…"`, `"caller":"key"`, `"role":"anon"`} {
		if len(entries) != 1 || !strings.Contains(strings.ReplaceAll(string(text), "&", `\u0026`), want) {
			t.Errorf("got %s, want one entry with %s", text, want)
		}
	}
	if strings.Contains(string(text), key) {
		t.Errorf("the key is in the log: %s", text)
	}
}

// exchange sends a message and returns the next one.
func exchange(t *testing.T, conn *websocket.Conn, text string) string {
	t.Helper()

	if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, data, err := conn.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

// TestStopEndsSockets stops a server with a socket, whose key is not in the server's log.
func TestStopEndsSockets(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t, "SOCLE_LOG_LEVEL=debug")
	_, metadata := c.made(t, "/projects/"+c.project+"/keys", `{"name": "browser", "kind": "publishable"}`)
	key := metadata["key"]
	conn, _, err := websocket.Dial(t.Context(),
		p.url+"/projects/"+c.project+"/realtime/v1/websocket?vsn=2.0.0&apikey="+key, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	exchange(t, conn, `[null,"1","phoenix","heartbeat",{}]`)

	p.signal(syscall.SIGTERM)
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("got %v, want that the server goes away", err)
	}
	if status := p.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}

	log := p.log.String()
	if key == "" || strings.Contains(log, key) || strings.Count(log, "/realtime/v1/websocket") != 1 {
		t.Errorf("got the log\n%swant the socket once, without its key", log)
	}
}
