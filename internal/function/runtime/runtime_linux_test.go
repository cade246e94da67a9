//go:build amd64 || arm64

package runtime

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/function/sandbox"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// record keeps the lines of a process.
type record struct {
	mu    sync.Mutex
	lines []Line
}

func (l *record) add(line Line) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.lines = append(l.lines, line)
}

func (l *record) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, line := range l.lines {
		if strings.Contains(line.Text, text) {
			return true
		}
	}

	return false
}

// program returns the path of Deno.
func program(t *testing.T) string {
	t.Helper()

	path, err := filepath.Abs("../../../bin/deno/deno")
	if err != nil {
		t.Fatal(err)
	}

	return path
}

// startTimeout is the time that Deno has on a busy machine.
const startTimeout = 3 * time.Minute

// start starts a process that has a module, and closes it at the test's end.
func start(t *testing.T, code string, env map[string]string) (*Process, *record, error) {
	t.Helper()

	return startModule(t, Module{Code: []byte(code), Env: env})
}

func startModule(t *testing.T, m Module) (*Process, *record, error) {
	t.Helper()

	log := &record{}
	p, err := Start(t.Context(), Config{Program: program(t), MemoryMB: 256, Log: log.add,
		Outward: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Asked", r.Method+" "+r.Host)
			w.WriteHeader(http.StatusTeapot)
		})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)

	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()

	return p, log, p.Load(ctx, m)
}

// serve starts a function behind a server.
func serve(t *testing.T, code string, env map[string]string) (string, *record) {
	t.Helper()

	p, log, err := start(t, code, env)
	if err != nil {
		t.Fatal(err)
	}

	proxy := &httputil.ReverseProxy{Transport: p, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", "function"
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	return server.URL, log
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()

	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	return res.StatusCode, string(body)
}

// TestHandlers: all ways by which functions name their handler.
func TestHandlers(t *testing.T) {
	t.Parallel()

	for name, code := range map[string]string{
		"serve":         `Deno.serve((r) => new Response("hello " + new URL(r.url).pathname));`,
		"serveOptions":  `Deno.serve({ port: 8080 }, (r) => new Response("hello " + new URL(r.clone().url).pathname));`,
		"serveHandler":  `Deno.serve({ handler: (r) => new Response("hello " + new URL(r.url).pathname) });`,
		"defaultFetch":  `export default { fetch(r) { return new Response("hello " + new URL(r.url).pathname); } };`,
		"topLevelAwait": `await Promise.resolve(); Deno.serve(async (r) => new Response("hello " + new URL(r.url).pathname));`,
		"oldListener": `
			const listener = Deno.listen({ port: 8000 });
			(async () => {
				while (true) {
					const conn = await listener.accept();
					const http = Deno.serveHttp(conn);
					(async () => {
						for (let e; (e = await http.nextRequest());) {
							await e.respondWith(new Response("hello " + new URL(e.request.url).pathname));
						}
					})();
				}
			})();`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url, _ := serve(t, code, nil)
			for range 2 {
				if status, body := get(t, url+"/name/x"); status != http.StatusOK || body != "hello /name/x" {
					t.Errorf("got %d %q", status, body)
				}
			}
		})
	}
}

// TestEnvironment: a function has its address, its secrets, and logs.
func TestEnvironment(t *testing.T) {
	t.Parallel()

	url, log := serve(t, `
		import process from "node:process";
		Deno.serve((r) => {
			console.log("asked for", new URL(r.url).pathname);
			console.error("warned");
			return Response.json([r.url, Deno.env.get("SECRET"), process.env.SECRET, r.headers.get("x-own")]);
		});`, map[string]string{"SECRET": "line one\nline two"})

	_, body := get(t, url+"/name?q=1")
	if want := `["` + url + `/name?q=1","line one\nline two","line one\nline two",null]`; body != want {
		t.Errorf("got %s, want %s", body, want)
	}

	pgtest.Eventually(t, "both lines in the log", func() bool {
		return log.has("asked for /name") && log.has("warned")
	})
}

// TestFailures: what goes wrong in a function, goes wrong in its answer only.
func TestFailures(t *testing.T) {
	t.Parallel()

	url, log := serve(t, `
		Deno.serve((r) => {
			switch (new URL(r.url).pathname) {
				case "/throw": throw new Error("thrown");
				case "/nothing": return;
				case "/reject": Promise.reject(new Error("rejected")); return new Response("rejects");
				case "/later": setTimeout(() => { throw new Error("late") }, 1); return new Response("late");
				case "/broken": return new Response(new ReadableStream({ pull() { throw new Error("broken") } }));
				case "/header": return new Response("", { headers: { "x": "a\r\nb: c" } });
			}
			return new Response("fine");
		});`, nil)

	for _, path := range []string{"/throw", "/nothing", "/header"} {
		if status, _ := get(t, url+path); status != http.StatusInternalServerError {
			t.Errorf("%s: got %d", path, status)
		}
	}
	for _, path := range []string{"/reject", "/later"} {
		if status, _ := get(t, url+path); status != http.StatusOK {
			t.Errorf("%s: got %d", path, status)
		}
	}

	if res, err := http.Get(url + "/broken"); err == nil {
		if _, err := io.ReadAll(res.Body); err == nil {
			t.Error("a broken stream ended as if it were whole")
		}
		_ = res.Body.Close()
	}

	pgtest.Eventually(t, "all errors in the log", func() bool {
		return log.has("Error: thrown") && log.has("Error: rejected") && log.has("Error: late")
	})
	if status, body := get(t, url); status != http.StatusOK || body != "fine" {
		t.Errorf("afterwards: got %d %q", status, body)
	}
}

// TestBootErrors: a module that does not load is refused with its reason.
func TestBootErrors(t *testing.T) {
	t.Parallel()

	for code, want := range map[string]string{
		`Deno.serve(`:                        "SyntaxError",
		`throw new Error("at the start");`:   "at the start",
		`export const x = 1;`:                "neither calls Deno.serve",
		`Deno.exit(3);`:                      "its process ended",
		`import "https://example.com/x.js";`: "example.com",
		`import "npm:left-pad";`:             "npm",
		`import "/etc/passwd";`:              "etc/passwd",
		`Deno.serve(() => {}); Deno.exit();`: "its process ended",
		`await new Promise(() => {});`:       "its process ended",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()

			_, _, err := start(t, code, nil)
			var boot *BootError
			if !errors.As(err, &boot) || !strings.Contains(boot.Text, want) {
				t.Errorf("got %v, want a BootError with %q", err, want)
			}
		})
	}
}

// TestCodeCache: what V8 made of a module is what another process runs, and nothing of the module
// runs meanwhile.
func TestCodeCache(t *testing.T) {
	t.Parallel()

	compile := func(code string) []byte {
		log := &record{}
		p, err := Start(t.Context(), Config{Program: program(t), MemoryMB: 256, Log: log.add,
			Outward: http.NotFoundHandler()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)

		made, err := p.Compile(t.Context(), []byte(code))
		if err != nil {
			t.Fatal(err)
		}
		if <-p.Exited(); log.has("runs") {
			t.Error("the module ran")
		}

		return made
	}

	const code = `console.log("runs"); const answer = "one"; Deno.serve(() => new Response(answer));`
	other := strings.Replace(code, "one", "two", 1)
	head, _, _ := strings.Cut(string(compile(code)), "\n")
	_, data, ok := strings.Cut(string(compile(other)), "\n")
	if !ok || len(data) < 100 {
		t.Fatalf("got %d bytes", len(data))
	}

	// V8 tells sources apart by their length, so the answer shows whose cache it took.
	p, _, err := startModule(t, Module{Code: []byte(code), CodeCache: []byte(head + "\n" + data)})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer(t, p); got != "two" {
		t.Errorf("got %q: the cache was not used", got)
	}

	for _, broken := range []string{"x", "[{},{}]\nx", head + "\n" + data[:len(data)/2]} {
		p, _, err := startModule(t, Module{Code: []byte(code), CodeCache: []byte(broken)})
		if err != nil {
			t.Fatal(err)
		}
		if got := answer(t, p); got != "one" {
			t.Errorf("with a broken cache: got %q", got)
		}
	}

	if got := compile(`Deno.serve(`); len(got) != 0 {
		t.Errorf("a module that does not compile: got %q", got)
	}
}

// answer returns the answer to a request.
func answer(t *testing.T, p *Process) string {
	t.Helper()

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://function/name", nil)
	if err != nil {
		t.Fatal(err)
	}

	res, err := p.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	return string(body)
}

// TestForgedCodeCache: a process that runs a function does not say what V8 made.
func TestForgedCodeCache(t *testing.T) {
	t.Parallel()

	p, _, err := start(t, `
		const conn = await Deno.connect({ hostname: "127.0.0.1", port: 3128 });
		await conn.write(new TextEncoder().encode("POST /compiled HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nforged"));
		await conn.read(new Uint8Array(64));
		Deno.serve(() => new Response("hello"));`, nil)
	if _, ok := errors.AsType[*BootError](err); !ok {
		t.Errorf("got %v", err)
	}
	select {
	case got := <-p.compiled:
		t.Errorf("took %q", got)
	default:
	}
}

// TestStreams: bodies flow both ways while the request runs, and the client's abort arrives.
func TestStreams(t *testing.T) {
	t.Parallel()

	url, log := serve(t, `
		Deno.serve((r) => {
			r.signal.addEventListener("abort", () => console.log("aborted", new URL(r.url).pathname));
			if (new URL(r.url).pathname === "/echo") return new Response(r.body);
			return new Response(new ReadableStream({
				start(c) { c.enqueue(new TextEncoder().encode("data: one\n\n")); },
			}), { headers: { "content-type": "text/event-stream" } });
		});`, nil)

	in, out := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/echo", in)
	if err != nil {
		t.Fatal(err)
	}

	answered := make(chan *http.Response, 1)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()

	if _, err := io.WriteString(out, "first"); err != nil {
		t.Fatal(err)
	}

	res := <-answered
	defer res.Body.Close()

	b := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != "first" {
		t.Errorf("got %q, %v, before the request ended", b, err)
	}
	_ = out.Close()

	ctx, cancel := context.WithCancel(t.Context())
	r, err = http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}

	events, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()

	b = make([]byte, 9)
	if _, err := io.ReadFull(events.Body, b); err != nil || string(b) != "data: one" {
		t.Errorf("got %q, %v", b, err)
	}

	cancel()
	pgtest.Eventually(t, "the abort in the function", func() bool { return log.has("aborted /events") })
}

// TestOutward: fetch and connections leave by the proxy.
func TestOutward(t *testing.T) {
	t.Parallel()

	url, _ := serve(t, `
		Deno.serve(async (r) => {
			const tcp = await Deno.connect({ hostname: "db.example.com", port: 5432 }).catch((e) => e.message);
			const plain = await fetch("http://api.example.com/x");
			const secure = await fetch("https://api.example.com/x").catch((e) => e.name);
			return Response.json([tcp, plain.status, plain.headers.get("asked"), secure]);
		});`, nil)

	want := `["connect db.example.com:5432: 418 I'm a teapot",418,"GET api.example.com","TypeError"]`
	if _, body := get(t, url); body != want {
		t.Errorf("got %s, want %s", body, want)
	}
}

// TestEnd: a process that ends says why, and finishes its background work first.
func TestEnd(t *testing.T) {
	t.Parallel()

	p, log, err := start(t, `
		let finish;
		EdgeRuntime.waitUntil(new Promise((r) => finish = r).then(() => console.log("finished")));
		addEventListener("beforeunload", (e) => { console.log("ends:", e.detail.reason); setTimeout(finish, 1); });
		Deno.serve(() => new Response());`, nil)
	if err != nil {
		t.Fatal(err)
	}

	p.End(t.Context(), "idle")
	if !log.has("ends: idle") || !log.has("finished") {
		t.Errorf("got %v", log.lines)
	}
}

// TestLongLines: a line has a bound, and the next one is whole.
func TestLongLines(t *testing.T) {
	t.Parallel()

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}

	go func() {
		_, _ = io.WriteString(w, strings.Repeat("x", 3*MaxLine)+"\nnext\x00\nlast")
		_ = w.Close()
	}()

	var got []string
	readLines(r, Stdout, func(l Line) { got = append(got, l.Text) })
	if len(got) != 3 || len(got[0]) != MaxLine || got[1] != "next" || got[2] != "last" {
		t.Errorf("got %d lines, %q", len(got), got[1:])
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()

	if _, err := Start(t.Context(), Config{Program: "/nowhere/deno"}); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v", err)
	}
	if _, ok := CurrentRelease(); !ok {
		t.Error("no release for this system")
	}
}
