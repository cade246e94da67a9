//go:build amd64 || arm64

package functionapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/function/sandbox"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) {
	sandbox.Init()

	deno, err := filepath.Abs("../../bin/deno")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("SOCLE_DENO_BIN", deno) // fails only for an invalid name

	os.Exit(pgtest.Run(m, apitest.StopShared))
}

// deploy stores a function.
func deploy(t *testing.T, a *apitest.API, name string, verify bool, code string) {
	t.Helper()

	sum := sha256.Sum256([]byte(code))
	if _, err := a.ProjectPool().Exec(t.Context(), `
		with f as (insert into socle.edge_functions (name, verify_jwt, sha256) values ($1, $2, $3))
		insert into socle.edge_function_versions (function_name, sha256, code) values ($1, $3, $4)`,
		name, verify, sum[:], []byte(code)); err != nil {
		t.Fatal(err)
	}
}

// call sends a request to a function.
func call(t *testing.T, a *apitest.API, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()

	return send(t, method, a.URL+"/projects/"+a.Project+"/functions/v1"+path, body, headers...)
}

// send sends a request.
func send(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()

	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	return res, string(text)
}

// TestCall: a function gets the request as Supabase's do, but no cookie, and its answer does not
// act on the server's origin.
func TestCall(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	deploy(t, a, "echo", false, `
		Deno.serve(async (r) => Response.json({ method: r.method, url: r.url, body: await r.text(),
			cookie: r.headers.get("cookie"), own: r.headers.get("x-own"), client: r.headers.get("x-forwarded-for") }, {
			status: 201, headers: { "set-cookie": "a=b", "x-mine": "yes", "service-worker-allowed": "/" } }));`)

	res, body := call(t, a, "PATCH", "/echo/a%20b?q=1&r=%2F", "content", "Cookie", "console=secret", "X-Own", "header",
		"X-Forwarded-For", "1.2.3.4")
	want := `{"method":"PATCH","url":"` + a.URL + `/echo/a%20b?q=1&r=%2F","body":"content","cookie":null,` +
		`"own":"header","client":"127.0.0.1"}`
	if res.StatusCode != http.StatusCreated || body != want {
		t.Errorf("got %d %s, want %s", res.StatusCode, body, want)
	}

	for name, want := range map[string]string{"Set-Cookie": "", "Service-Worker-Allowed": "", "X-Mine": "yes",
		"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff",
		"Content-Type": "application/json"} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestMarkup: HTML is text.
func TestMarkup(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	deploy(t, a, "page", false, `
		Deno.serve(() => new Response("<p>", { headers: { "content-type": "text/html; charset=utf-8" } }));`)
	if res, _ := call(t, a, "GET", "/page", ""); res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got %q", res.Header.Get("Content-Type"))
	}
}

// TestVerify: a function that verifies wants a key or token of the project, but for preflights.
func TestVerify(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	deploy(t, a, "closed", true, `
		Deno.serve((r) => new Response(r.method + " " + (r.headers.get("authorization") ?? ""),
			{ headers: { "access-control-allow-origin": "https://app.example.com" } }));`)

	created := a.Post("/projects/"+a.Project+"/keys", `{"name": "app", "kind": "publishable"}`).Want(201)
	key, _ := created.Metadata("key").(string)
	bearer := "Bearer " + key
	for name, headers := range map[string][]string{"apikey": {"Apikey", key}, "bearer": {"Authorization", bearer},
		"both": {"Apikey", key, "Authorization", bearer}} {
		if res, body := call(t, a, "POST", "/closed", "", headers...); res.StatusCode != 200 {
			t.Errorf("%s: got %d %s", name, res.StatusCode, body)
		}
	}

	for name, headers := range map[string][]string{"none": nil, "another": {"Apikey", key + "x"},
		"forged": {"Authorization", "Bearer a.b.c"}} {
		res, body := call(t, a, "POST", "/closed", "", append(headers, "Origin", "https://app.example.com")...)
		if res.StatusCode != 401 || res.Header.Get("X-Relay-Error") != "true" ||
			res.Header.Get("Sb-Error-Code") == "" || res.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: got %d %s, %v", name, res.StatusCode, body, res.Header)
		}
	}

	res, body := call(t, a, "OPTIONS", "/closed", "", "Origin", "https://app.example.com",
		"Access-Control-Request-Method", "POST")
	if body != "OPTIONS " || res.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("a preflight: got %q, %v", body, res.Header)
	}
}

// TestFailures: the platform's failures have the statuses and codes that clients know.
func TestFailures(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	deploy(t, a, "broken", false, `throw new Error("at the start");`)
	deploy(t, a, "exits", false, `Deno.serve(() => Deno.exit(1));`)
	deploy(t, a, "loops", false, `Deno.serve(() => { while (true); });`)
	deploy(t, a, "throws", false, `Deno.serve(() => { throw new Error("in the handler"); });`)
	deploy(t, a, "takes", false, `Deno.serve(async (r) => new Response((await r.bytes()).length));`)

	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"/unknown": {404, "NOT_FOUND"}, "/": {404, "NOT_FOUND"}, "/..%2fx": {404, "NOT_FOUND"},
		"/.socle": {404, "NOT_FOUND"},
		"/broken": {503, "BOOT_ERROR"}, "/exits": {500, "WORKER_ERROR"}, "/loops": {546, "WORKER_LIMIT"},
		"/throws": {500, "WORKER_ERROR"},
	} {
		res, body := call(t, a, "GET", path, "")
		if res.StatusCode != want.status || res.Header.Get("Sb-Error-Code") != want.code {
			t.Errorf("%s: got %d %s, want %v", path, res.StatusCode, body, want)
		}
		if relayed := res.Header.Get("X-Relay-Error") == "true"; relayed == (path == "/throws") {
			t.Errorf("%s: X-Relay-Error is %v", path, relayed)
		}
	}

	if res, _ := call(t, a, "POST", "/takes", strings.Repeat("x", 20<<20+1)); res.StatusCode == 200 {
		t.Error("a body beyond the limit was taken")
	}
	if res, body := call(t, a, "POST", "/takes", strings.Repeat("x", 1<<20)); body != "1048576" {
		t.Errorf("a body of 1 MB: got %d %s", res.StatusCode, body)
	}
}

// TestRows: a function reads rows of its project with the keys of its environment.
func TestRows(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("books", "title text")
	deploy(t, a, "rows", false, `
		Deno.serve(async () => {
			const url = Deno.env.get("SUPABASE_URL") + "/rest/v1/books?select=title";
			const status = async (key) => (await fetch(url, { headers: { apikey: Deno.env.get(key) } })).status;
			return Response.json([await status("SUPABASE_SERVICE_ROLE_KEY"), await status("SUPABASE_ANON_KEY")]);
		});`)
	if _, body := call(t, a, "GET", "/rows", ""); !strings.HasPrefix(body, "[200,") {
		t.Errorf("got %s", body)
	}
}

func TestWebSocket(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	deploy(t, a, "socket", false, `
		Deno.serve((r) => {
			const { socket, response } = Deno.upgradeWebSocket(r);
			socket.onmessage = (e) => socket.send("echo " + e.data);
			return response;
		});`)

	conn, _, err := websocket.Dial(t.Context(), a.URL+"/projects/"+a.Project+"/functions/v1/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()

	if err := conn.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.Read(t.Context()); err != nil || string(got) != "echo hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestPaused: the functions of a paused project answer as the project.
func TestPaused(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	deploy(t, a, "hello", false, `Deno.serve(() => new Response("hello"));`)
	if _, body := call(t, a, "GET", "/hello", ""); body != "hello" {
		t.Errorf("got %q", body)
	}

	a.Post("/projects/"+a.Project+"/pause", "").Want(200)
	if res, body := call(t, a, "GET", "/hello", ""); res.StatusCode != http.StatusConflict {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

// TestCallers: schedules, webhooks and hooks of end users call functions as the service, whatever
// verify_jwt says.
func TestCallers(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	project := "/projects/" + a.Project
	deploy(t, a, "sink", true, `
		Deno.serve(async (r) => {
			const headers = { apikey: Deno.env.get("SUPABASE_SERVICE_ROLE_KEY"), "content-type": "application/json" };
			const event = await r.json();
			const kind = event.schedule ? "schedule" : event.type ?? event.metadata?.name;
			const path = new URL(r.url).pathname;
			const recorded = await fetch(Deno.env.get("SUPABASE_URL") + "/rest/v1/calls", { method: "POST", headers,
				body: JSON.stringify({ id: Math.floor(Math.random() * 2 ** 31),
					line: [kind, path, r.headers.has("webhook-signature")].join(" ") }) });
			if (!recorded.ok) throw new Error(await recorded.text());
			return Response.json({ claims: { ...event.claims, plan: "pro" } });
		});`)
	a.CreateTable("calls", "line text")
	a.CreateTable("orders", "title text")

	received := func(text string) {
		t.Helper()
		apitest.Until(t, text, func() bool {
			var found bool
			err := a.ProjectPool().QueryRow(t.Context(), `select exists (select from public.calls where line = $1)`, text).
				Scan(&found)
			if err != nil {
				t.Fatal(err)
			}
			return found
		})
	}

	a.Post(project+"/schedules", `{"name": "ticks", "cron": "1 second", "endpoint": "functions://sink/tick"}`).Want(201)
	received("schedule /sink/tick true")

	a.Post(project+"/webhooks", `{"name": "orders", "endpoint": "functions://sink/orders", "tables": [{"table": "orders"}]}`).
		Want(201)
	if _, err := a.ProjectPool().Exec(t.Context(), `insert into public.orders (id, title) values (1, 'one')`); err != nil {
		t.Fatal(err)
	}
	received("socle.row.inserted.v1 /sink/orders true")

	a.Put(project+"/auth-settings", `{"confirm_email": false, "hooks": {"custom_access_token": "functions://sink"}}`).Want(200)
	created := a.Post(project+"/keys", `{"name": "app", "kind": "publishable"}`).Want(201)
	key, _ := created.Metadata("key").(string)
	var session struct {
		AccessToken string `json:"access_token"`
	}
	n := 0
	apitest.Until(t, "the settings have taken effect", func() bool {
		n++
		res, body := send(t, "POST", a.URL+project+"/auth/v1/signup",
			fmt.Sprintf(`{"email": "ann%d@example.com", "password": "correct horse 1"}`, n),
			"Apikey", key, "Content-Type", "application/json")
		if err := json.Unmarshal([]byte(body), &session); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("got %d %s", res.StatusCode, body)
		}
		return session.AccessToken != ""
	})
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(session.AccessToken, ".")[1])
	if err != nil || !strings.Contains(string(claims), `"plan":"pro"`) {
		t.Errorf("got claims %s, %v", claims, err)
	}

	for path, body := range map[string]string{
		project + "/schedules": `{"name": "bad", "cron": "@daily", "endpoint": "functions://a.b"}`,
		project + "/webhooks":  `{"name": "bad", "endpoint": "functions://"}`,
	} {
		a.Post(path, body).Want(422).Field("endpoint")
	}
}

// TestDepth: functions call each other, up to a depth.
func TestDepth(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	deploy(t, a, "again", false, `
		Deno.serve(async (r) => {
			const next = await fetch(Deno.env.get("SUPABASE_URL") + "/functions/v1/again");
			const text = next.ok ? await next.text() : next.headers.get("sb-error-code");
			return new Response(r.headers.get("x-socle-depth") + " " + text);
		});`)
	if _, body := call(t, a, "GET", "/again", ""); body != "1 2 3 4 5 LOOP_DETECTED" {
		t.Errorf("got %s", body)
	}
}

// TestEnvironment: a function has what Supabase's have, and its database by the URL.
func TestEnvironment(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	other := apitest.SharedUser(t)
	a.CreateTable("books", "title text")
	deploy(t, a, "env", false, `
		Deno.serve(async (r) => {
			const env = Deno.env.toObject();
			const url = new URL(env.SUPABASE_DB_URL);
			const conn = await Deno.connect({ hostname: url.hostname, port: Number(url.port) });
			const text = new TextEncoder();
			const database = new URL(r.url).searchParams.get("database");
			const startup = text.encode("\0\x03\0\0user\0postgres\0database\0" + database + "\0\0");
			const query = text.encode("select string_agg(relname, ' ') from pg_class where relname in ('books', 'users')\0");
			const packet = (kind, body) => {
				const b = new Uint8Array(kind.length + 4 + body.length);
				b.set(text.encode(kind));
				new DataView(b.buffer).setInt32(kind.length, body.length + 4);
				b.set(body, kind.length + 4);
				return b;
			};
			await conn.write(packet("", startup));
			await conn.write(packet("Q", query));
			await conn.write(packet("X", new Uint8Array()));
			const answer = await new Response(conn.readable).text();
			const keys = JSON.parse(env.SUPABASE_JWKS).keys.length;
			return Response.json([answer.includes("books"), keys > 0, env.SB_REGION, env.SB_EXECUTION_ID.length]);
		});`)

	for _, database := range []string{"postgres", a.Project, other.Project} {
		if _, body := call(t, a, "GET", "/env?database="+database, ""); body != `[true,true,"local",36]` {
			t.Errorf("%s: got %s", database, body)
		}
	}
}

// TestRealtimeFromFunction: a WebSocket to the project itself opens.
func TestRealtimeFromFunction(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	deploy(t, a, "listen", false, `
		Deno.serve(async () => {
			const url = Deno.env.get("SUPABASE_URL").replace("http", "ws") + "/realtime/v1/websocket?vsn=1.0.0&apikey=" +
				Deno.env.get("SUPABASE_ANON_KEY");
			const socket = new WebSocket(url);
			const outcome = await new Promise((resolve) => {
				socket.onopen = () => socket.send(JSON.stringify({ topic: "phoenix", event: "heartbeat", payload: {}, ref: "1" }));
				socket.onmessage = (e) => resolve(JSON.parse(e.data).payload.status);
				socket.onerror = (e) => resolve(e.message);
			});
			socket.close();
			return new Response(outcome);
		});`)
	if _, body := call(t, a, "GET", "/listen", ""); body != "ok" {
		t.Errorf("got %s", body)
	}
}
