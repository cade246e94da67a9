//go:build amd64 || arm64

package functionapi_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestManyWebSockets: a function has as many open WebSockets as concurrent requests. Others get
// 503, other functions answer, and closed ones make room.
func TestManyWebSockets(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	deploy(t, a, "sockets", false, `
		Deno.serve((r) => {
			if (r.headers.get("upgrade") !== "websocket") return new Response("plain");
			const { socket, response } = Deno.upgradeWebSocket(r);
			socket.onmessage = (e) => socket.send(e.data);
			return response;
		});`)
	deploy(t, a, "other", false, `Deno.serve(() => new Response("other"));`)
	if _, body := call(t, a, "GET", "/sockets", ""); body != "plain" {
		t.Fatalf("got %q", body)
	}

	const sockets, concurrency, dialers = 1000, 64, 16
	var mu sync.Mutex
	var open []*websocket.Conn
	var refused, next atomic.Int64
	url := a.URL + "/projects/" + a.Project + "/functions/v1/sockets"
	var wg sync.WaitGroup
	for range dialers {
		wg.Go(func() {
			for next.Add(1) <= sockets {
				conn, res, err := websocket.Dial(t.Context(), url, nil)
				switch {
				case err == nil:
					mu.Lock()
					open = append(open, conn)
					mu.Unlock()
				case res != nil && res.StatusCode == http.StatusServiceUnavailable:
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()

	if len(open) != concurrency || refused.Load() != sockets-concurrency {
		t.Errorf("%d sockets are open, %d were refused", len(open), refused.Load())
	}
	for _, conn := range open {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte("x")); err != nil {
			t.Error(err)
		}
		if _, got, err := conn.Read(t.Context()); err != nil || string(got) != "x" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if res, _ := call(t, a, "GET", "/sockets", ""); res.StatusCode != http.StatusServiceUnavailable ||
		res.Header.Get("Retry-After") == "" {
		t.Errorf("a further request: got %d", res.StatusCode)
	}
	if _, body := call(t, a, "GET", "/other", ""); body != "other" {
		t.Errorf("got %q", body)
	}

	for _, conn := range open {
		_ = conn.CloseNow()
	}
	apitest.Until(t, "a free place", func() bool {
		_, body := call(t, a, "GET", "/sockets", "")
		return body == "plain"
	})
}

// TestRestore: a restore in place brings back the version of the backup, while a process runs the
// other one.
func TestRestore(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	deploy(t, a, "hello", false, `Deno.serve(() => new Response("one"));`)
	if _, body := call(t, a, "GET", "/hello", ""); body != "one" {
		t.Fatalf("got %q", body)
	}

	backup := a.Post("/backups", `{}`).Want(201).Get("uuid").(string)
	apitest.Until(t, "the backup is complete", func() bool {
		return a.Get("/backups/"+backup).Want(200).Get("status") == "completed"
	})

	a.Put("/projects/"+a.Project+"/edge-functions/hello",
		`{"verify_jwt": false, "code": "Deno.serve(() => new Response('two'));"}`).Want(200)
	if _, body := call(t, a, "GET", "/hello", ""); body != "two" {
		t.Fatalf("got %q", body)
	}

	restore := a.Post("/backups/"+backup+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string)
	apitest.Until(t, "the restore is complete", func() bool {
		return a.Get("/restores/"+restore).Want(200).Get("status") == "completed"
	})
	apitest.Until(t, "the version of the backup", func() bool {
		_, body := call(t, a, "GET", "/hello", "")
		return body == "one"
	})
}
