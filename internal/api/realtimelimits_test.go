package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestRealtimeLimits changes limits, which hold for the next connection and message.
func TestRealtimeLimits(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	administrator := a.Administrator()
	project := "/projects/" + a.Project
	path := project + "/realtime-limits"
	a.Get(path).Want(200).Content("sockets", 10000).Content("payloadBytes", 262144).Content("logHours", 24)
	key := a.Post(project+"/keys", `{"name": "browser", "kind": "publishable"}`).Want(201).Metadata("key").(string)

	connect := func() (*websocket.Conn, int) {
		conn, res, err := websocket.Dial(t.Context(), a.URL+project+"/realtime/v1/websocket?vsn=2.0.0&apikey="+key, nil)
		if err != nil && res == nil {
			t.Fatal(err)
		}
		return conn, res.StatusCode
	}
	first, status := connect()
	if status != http.StatusSwitchingProtocols {
		t.Fatalf("before: got %d", status)
	}
	defer first.CloseNow()

	administrator.Put(path, `{"sockets": 1, "channels_per_socket": 1, "payload_bytes": 1000}`).Want(200).
		Content("sockets", 1).Content("channels", 100000)
	administrator.Put(path, `{"log_hours": 72}`).Want(200).Content("logHours", 72).Content("sockets", 1)
	a.Get(path).Want(200).Content("channelsPerSocket", 1).Content("logBytes", 256<<20)

	if _, status := connect(); status != http.StatusTooManyRequests {
		t.Errorf("a second socket: got %d, want 429", status)
	}
	res, err := http.Post(a.URL+project+"/realtime/v1/api/broadcast/x/events/e?apikey="+key, "application/json",
		strings.NewReader(`"`+strings.Repeat("x", 1000)+`"`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a large payload: got %d, want 413", res.StatusCode)
	}

	// The open socket has the new limits within seconds.
	until(t, "the socket's channels are bounded", func() bool {
		first := exchange(t, first, `["1","1","realtime:a","phx_join",{"config":{"presence":{"enabled":false}}}]`) +
			exchange(t, first, `["2","2","realtime:b","phx_join",{"config":{"presence":{"enabled":false}}}]`)
		return strings.Contains(first, "ChannelRateLimitReached")
	})

	a.Put(path, `{"sockets": 5}`).Want(403)
	administrator.Put(path, `{}`).Want(422).Code("nothing_to_change")
	administrator.Put(path, `{"sockets": 0}`).Want(422).Field("sockets")
	administrator.Put(path, `{"log_hours": 241}`).Want(422).Field("log_hours")
	a.Get("/projects/x/realtime-limits").Want(400)
	administrator.Put("/projects/x/realtime-limits", `{"sockets": 5}`).Want(400)
	a.Post(project+"/pause", "").Want(200)
	administrator.Put(path, `{"sockets": 5}`).Want(409).Code("project_paused")
}

// exchange sends a message to a socket and returns the next one.
func exchange(t *testing.T, conn *websocket.Conn, text string) string {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, data, err := conn.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}
