package server_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/pgtest"
)

// startCluster starts servers on one platform database, and waits until they know each other.
func startCluster(t *testing.T, n int, settings ...string) []*process {
	t.Helper()

	settings = append(settings, "SOCLE_DATABASE_URL="+pgtest.URL(t), "SOCLE_STORAGE_URL=file://"+t.TempDir(),
		"SOCLE_SECRET_KEY=kOrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE=")
	var servers []*process
	for range n {
		servers = append(servers, serve(t, t.TempDir(), settings...))
	}
	for _, p := range servers {
		p.await("another server joined", n-1)
	}

	return servers
}

// await waits until the log has a text so many times.
func (p *process) await(text string, times int) {
	p.t.Helper()
	eventually(p.t, text, func() bool { return strings.Count(p.log.String(), text) == times })
}

// dialChannel joins a channel on a server, and returns a function that waits for a message with
// texts.
func dialChannel(t *testing.T, p *process, c client, key string) (*websocket.Conn, func(texts ...string)) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	path := "/projects/" + c.project + "/realtime/v1/websocket?vsn=2.0.0&apikey="
	conn, _, err := websocket.Dial(ctx, p.url+path+key, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	exchange(t, conn, `["1","1","realtime:x","phx_join",{"config":{"presence":{"key":"`+key[len(key)-4:]+`"}}}]`)

	return conn, func(texts ...string) {
		t.Helper()
		for {
			_, data, err := conn.Read(ctx)
			if err != nil {
				t.Fatalf("no message with %q: %v", texts, err)
			}

			found := 0
			for _, text := range texts {
				if strings.Contains(string(data), text) {
					found++
				}
			}
			if found == len(texts) {
				return
			}
		}
	}
}

// TestRealtimeOnServers has supabase-js talk over channels on two of three servers. Then a server
// is killed.
func TestRealtimeOnServers(t *testing.T) {
	t.Parallel()

	servers := startCluster(t, 3)
	c := servers[0].newClient()
	c.want(t, 200, "POST", "/sql", `{"read_only": false, "query": "`+todosSchema+`"}`)
	_, publishable := c.made(t, "/projects/"+c.project+"/keys", `{"name": "browser", "kind": "publishable"}`)
	_, secret := c.made(t, "/projects/"+c.project+"/keys", `{"name": "server", "kind": "secret"}`)
	jwt, _ := c.want(t, 200, "GET", "/projects/"+c.project+"/jwt-secret", "")["secret"].(string)

	runNode(t, clients, []string{
		"SOCLE_PROJECT=" + servers[0].url + "/projects/" + c.project,
		"SOCLE_PROJECT_ELSEWHERE=" + servers[1].url + "/projects/" + c.project,
		"SOCLE_PUBLISHABLE=" + publishable["key"], "SOCLE_SECRET=" + secret["key"], "SOCLE_JWT_SECRET=" + jwt,
	}, "--experimental-websocket", "realtime.mjs")

	ann, _ := dialChannel(t, servers[2], c, publishable["key"])
	_, next := dialChannel(t, servers[0], c, secret["key"])
	const track = `["1","2","realtime:x","presence",{"type":"presence","event":"track","payload":{"at":"third"}}]`
	if err := ann.Write(t.Context(), websocket.MessageText, []byte(track)); err != nil {
		t.Fatal(err)
	}
	next("presence_diff", `"joins":{"`+publishable["key"][len(publishable["key"])-4:], `"third"`)

	servers[2].signal(syscall.SIGKILL)
	next("presence_diff", `"leaves":{"`+publishable["key"][len(publishable["key"])-4:], `"third"`)

	servers[1].signal(syscall.SIGTERM) // says goodbye
	servers[1].wait()
	servers[0].await("another server left", 1)
}
