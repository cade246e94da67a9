//go:build amd64 || arm64

package runtime

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// internet is a proxy behind which every host is the same server, except that those of names
// "plain" and "secure" speak HTTP and HTTPS.
func internet(t *testing.T, h http.Handler) http.Handler {
	t.Helper()

	plain, secure := httptest.NewServer(h), httptest.NewTLSServer(h)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	dial := func(host string) (net.Conn, error) {
		server := plain
		if strings.HasSuffix(host, ":443") {
			server = secure
		}

		return net.Dial("tcp", server.Listener.Addr().String())
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "closed.example") {
			http.Error(w, "the address is closed to functions", http.StatusForbidden)
			return
		}
		if r.Method != http.MethodConnect {
			proxy := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: &http.Transport{
				DialContext: func(_ context.Context, _, host string) (net.Conn, error) { return dial(host) }}}
			proxy.ServeHTTP(w, r)

			return
		}

		far, err := dial(r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		defer far.Close()

		near, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer near.Close()

		_, _ = io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { _, _ = io.Copy(far, buffered) }()
		_, _ = io.Copy(near, far)
	})
}

// run loads a module whose Outward is given, and returns the answer to one request.
func run(t *testing.T, outward http.Handler, code string) string {
	t.Helper()

	log := &record{}
	p, err := Start(t.Context(), Config{Program: program(t), MemoryMB: 256, Log: log.add, Outward: outward})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)

	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()

	err = p.Load(ctx, Module{Code: []byte(code),
		Origins: Origins{Public: "https://api.socle.example", Inside: "http://socle.internal"}})
	if err != nil {
		t.Fatal(err)
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://function/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Forwarded-Proto", "http")
	r.Header.Set("X-Socle-Depth", "3")

	res, err := p.RoundTrip(r)
	if err != nil {
		t.Fatal(err, log.lines)
	}
	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Errorf("got %d %s, %v", res.StatusCode, body, log.lines)
	}

	return string(body)
}

// echo answers with what it was asked, and echoes messages of WebSockets.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"chat"},
			InsecureSkipVerify: true})
		if err != nil {
			return
		}
		kind, text, err := conn.Read(r.Context())
		if err == nil {
			_ = conn.Write(r.Context(), kind, append([]byte(r.Host+" "), text...))
		}
		_ = conn.Close(websocket.StatusNormalClosure, "")

		return
	}

	body, _ := io.ReadAll(r.Body)
	_, _ = io.WriteString(w, r.Method+" "+r.Host+r.URL.Path+" "+string(body)+r.Header.Get("X-Socle-Depth"))
}

// TestNodeSockets: node:net, node:http and node:https reach other hosts.
func TestNodeSockets(t *testing.T) {
	t.Parallel()

	got := run(t, internet(t, http.HandlerFunc(echo)), `
		import net from "node:net";
		import tls from "node:tls";
		import http from "node:http";
		import https from "node:https";

		const request = "GET /raw HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
		const rest = (socket) => new Promise((resolve, reject) => {
			let text = "";
			socket.on("data", (b) => text += b).on("end", () => resolve(text.split("\r\n").at(-1))).on("error", (e) => resolve(e.code));
		});
		const raw = (...options) => { const s = net.connect(...options); s.write(request); return rest(s); };
		const late = () => { const s = new net.Socket(); s.connect(80, "db.example", () => s.write(request)); return rest(s); };
		const secure = () => { const s = tls.connect({ host: "db.example", port: 443, rejectUnauthorized: false }); s.write(request); return rest(s); };
		const get = (module, url, options) => new Promise((resolve) =>
			module.get(url, { agent: false, ...options }, (r) => resolve(rest(r))).on("error", (e) => resolve(e.code)));
		Deno.serve(async () => Response.json([
			await raw({ host: "db.example", port: 80 }), await raw(80, "db.example"), await late(), await secure(),
			await get(http, "http://api.example/x"), await get(https, "https://api.example/x", { rejectUnauthorized: false }),
			await raw(80, "closed.example"),
		]));`)
	want := `["GET h/raw ","GET h/raw ","GET h/raw ","GET h/raw ","GET api.example/x ","GET api.example/x ","ECONNREFUSED"]`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestWebSocketOutward: the client of WebSockets reaches other hosts, and the server by its public
// address.
func TestWebSocketOutward(t *testing.T) {
	t.Parallel()

	got := run(t, internet(t, http.HandlerFunc(echo)), `
		const ask = (...options) => new Promise((resolve) => {
			const socket = new WebSocket(...options);
			socket.onopen = () => socket.send("hello");
			socket.onmessage = (e) => resolve(socket.protocol + " " + e.data);
			socket.onerror = () => resolve("failed");
		});
		Deno.serve(async () => Response.json([
			await ask("ws://live.example/x"), await ask("ws://live.example/x", ["chat"]),
			await ask("wss://api.socle.example/realtime"), await ask("ws://closed.example/"),
		]));`)
	want := `[" live.example hello","chat live.example hello"," socle.internal hello","failed"]`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestOwnOrigin: requests to the server go to the inner address, with the depth of the call.
func TestOwnOrigin(t *testing.T) {
	t.Parallel()

	got := run(t, internet(t, http.HandlerFunc(echo)), `
		const own = "https://api.socle.example/rest/v1/books";
		const text = async (...request) => {
			const response = await fetch(...request);
			return response.url + " " + await response.text();
		};
		Deno.serve(async () => Response.json([
			await text(own), await text(own, { method: "POST", body: "one" }), await text(new URL(own)),
			await text(new Request(own, { method: "PUT", body: "two" })),
			await text(new Request(own), { method: "PATCH", body: new Response("three").body, duplex: "half" }),
			await text("http://api.socle.example.evil/x"),
		]));`)
	const own = "https://api.socle.example/rest/v1/books"
	want := `["` + strings.Join([]string{
		own + ` GET socle.internal/rest/v1/books 3`, own + ` POST socle.internal/rest/v1/books one3`,
		own + ` GET socle.internal/rest/v1/books 3`, own + ` PUT socle.internal/rest/v1/books two3`,
		own + ` PATCH socle.internal/rest/v1/books three3`,
		`http://api.socle.example.evil/x GET api.socle.example.evil/x `}, `","`) + `"]`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSourceMaps: stacks name the files and lines that the developer wrote.
func TestSourceMaps(t *testing.T) {
	t.Parallel()

	// By deno bundle --sourcemap=inline, of src/index.ts.
	const code = `Deno.serve((_r) => {
  throw new Error("mapped");
});
//# sourceMappingURL=data:application/json;base64,` +
		`eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbInNyYy9pbmRleC50cyJdLCJtYXBwaW5ncyI6IkFBVUE7RUFDRSxNQUFNO0FBQ1IiLCJuYW1lcyI6W119`
	url, log := serve(t, code, nil)
	if status, _ := get(t, url); status != http.StatusInternalServerError {
		t.Errorf("got %d", status)
	}
	if !log.has("src/index.ts:12:") {
		t.Errorf("got %q", log.lines)
	}
}
