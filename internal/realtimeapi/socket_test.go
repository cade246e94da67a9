package realtimeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/realtime"
)

// fakeProject is a project whose tokens are their own claims.
type fakeProject struct {
	uuid uuid.UUID

	mu      sync.Mutex
	refused map[string]bool // keys and tokens
	failure error           // why it is inactive or gone
	feed    Changes
	policy  Authorizer
	kept    Archive
	bounds  func() (event.RealtimeLimits, error) // nil: the default ones
}

func (p *fakeProject) id() uuid.UUID { return p.uuid }
func (p *fakeProject) share(context.Context) fair.Key {
	return fair.Key{Account: "a", Part: p.uuid.String()}
}
func (p *fakeProject) timeout(string) time.Duration { return 0 }
func (p *fakeProject) changes() Changes             { return p.feed }
func (p *fakeProject) authorizer() Authorizer       { return p.policy }
func (p *fakeProject) archive() Archive             { return p.kept }
func (p *fakeProject) limits(context.Context) (event.RealtimeLimits, error) {
	if p.bounds == nil {
		return event.DefaultLimits, nil
	}
	return p.bounds()
}

func (p *fakeProject) current(context.Context) (project, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if fault.Is(p.failure, fault.NotFound) {
		return nil, p.failure
	}

	return p, nil
}

func (p *fakeProject) inactive() error {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.failure
}

func (p *fakeProject) identify(r *http.Request, text string) (gateway.Caller, error) {
	return p.verify(r.Context(), text)
}

func (p *fakeProject) verify(_ context.Context, text string) (gateway.Caller, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	switch {
	case p.refused[text]:
	case text == "key":
		return gateway.Caller{Role: "anon"}, nil
	case text == "secret":
		return gateway.Caller{Role: "service_role"}, nil
	case strings.HasPrefix(text, "{"):
		var c struct{ Role, Sub string }
		if json.Unmarshal([]byte(text), &c) == nil {
			return gateway.Caller{Role: c.Role, Subject: c.Sub, Claims: []byte(text)}, nil
		}
	}

	return gateway.Caller{}, gateway.ErrInvalidKey
}

// maxPayload is the limit of a rig's project.
var maxPayload = event.DefaultLimits.PayloadBytes

// rig is a server with a project.
type rig struct {
	t       *testing.T
	server  *Server
	project *fakeProject
	url     string
	log     chan httpx.Finished
}

func newRig(t *testing.T) *rig {
	t.Helper()

	g := &rig{t: t, project: &fakeProject{uuid: uuid.New()}, log: make(chan httpx.Finished, 1000)}
	g.server = New(Config{Hub: realtime.NewHub(), Bodies: httpx.NewBodyPool(64 << 20),
		Log: slog.New(slog.DiscardHandler)})
	s := httptest.NewServer(httpx.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.server.serve(w, r, g.project, r.URL.EscapedPath())
	}), httpx.Config{Log: slog.New(slog.DiscardHandler), Answered: func(f httpx.Finished) { g.log <- f }}))
	g.url = s.URL
	t.Cleanup(func() { s.Close(); g.server.Close() })

	return g
}

// client is a client of a rig.
type client struct {
	t    *testing.T
	conn *websocket.Conn
}

func (g *rig) dial(query string) *client {
	g.t.Helper()

	conn, _, err := websocket.Dial(g.t.Context(), g.url+"/websocket?"+query, nil)
	if err != nil {
		g.t.Fatal(err)
	}

	conn.SetReadLimit(4 << 20)
	g.t.Cleanup(func() { conn.CloseNow() })

	return &client{g.t, conn}
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) sendBytes(frame string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageBinary, []byte(frame)); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next message.
func (c *client) read() string {
	c.t.Helper()

	ctx, cancel := context.WithTimeout(c.t.Context(), pgtest.Patience)
	defer cancel()

	_, data, err := c.conn.Read(ctx)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}

	return string(data)
}

// want compares the next message; JSON by its value.
func (c *client) want(want string) {
	c.t.Helper()

	got := c.read()
	var a, b any
	if json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(want), &b) == nil && reflect.DeepEqual(a, b) {
		return
	}
	if got != want {
		c.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// wantPart checks that the next message contains a text.
func (c *client) wantPart(want string) string {
	c.t.Helper()

	got := c.read()
	if !strings.Contains(got, want) {
		c.t.Fatalf("got %s, want %s in it", got, want)
	}

	return got
}

// wantClose checks that the server closes the socket, after any messages.
func (c *client) wantClose(code websocket.StatusCode, reason string) {
	c.t.Helper()

	ctx, cancel := context.WithTimeout(c.t.Context(), pgtest.Patience)
	defer cancel()

	for {
		_, _, err := c.conn.Read(ctx)
		if err == nil {
			continue
		}
		if e := websocket.CloseStatus(err); e != code || !strings.Contains(err.Error(), reason) {
			c.t.Fatalf("got %v, want %d %s", err, code, reason)
		}

		return
	}
}

// join joins a channel with a configuration, in the serializer 2.0.0, with 1 as the references.
func (c *client) join(topic, config string) {
	c.t.Helper()

	c.send(`["1","1","realtime:` + topic + `","phx_join",{"config":` + config + `}]`)
	c.want(`["1","1","realtime:` + topic + `","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]`)
}

// quiet configures a channel without presence.
const quiet = `{"presence":{"enabled":false}}`

// sync checks that no other message has come.
func (c *client) sync() {
	c.t.Helper()
	c.send(`[null,"9","phoenix","heartbeat",{}]`)
	c.want(`[null,"9","phoenix","phx_reply",{"status":"ok","response":{}}]`)
}

func TestHandshake(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Origin": {"https://app.example"}}
	for _, test := range []struct {
		path    string
		header  http.Header
		failure error
		status  int
		want    string
	}{
		{"/websocket?apikey=key&vsn=2.0.0", upgrade, nil, 101, ""},
		{"/websocket?apikey=key", upgrade, nil, 101, ""},
		{"/websocket?apikey=wrong&vsn=2.0.0", upgrade, nil, 401, `"invalid_key"`},
		{"/websocket", upgrade, nil, 401, `"error"`},
		{"/websocket?apikey=key&vsn=3.0.0", upgrade, nil, 400, "unknown_serializer"},
		{"/websocket?apikey=key&vsn=2.0.0", nil, nil, 400, "no_handshake"},
		{"/websocket?apikey=key&x=" + strings.Repeat("x", maxQuery), upgrade, nil, 400, "query string"},
		{"/websocket?apikey=key", upgrade, fault.New(fault.Conflict, "The project is paused"), 409, "is paused"},
		{"/websocket?apikey=wrong", upgrade, fault.New(fault.Conflict, "The project is paused"), 401, "invalid_key"},
		{"/other?apikey=key", nil, nil, 404, "not_found"},
		{"/", nil, nil, 404, "not_found"},
	} {
		g.project.mu.Lock()
		g.project.failure = test.failure
		g.project.mu.Unlock()

		r, err := http.NewRequestWithContext(t.Context(), "GET", g.url+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.header != nil {
			r.Header = test.header.Clone()
		}

		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body := ""
		if resp.StatusCode != 101 {
			var b struct{ Error, Code string }
			if err := json.NewDecoder(resp.Body).Decode(&b); err != nil || b.Error == "" {
				t.Errorf("%s: got %+v, %v", test.path, b, err)
			}
			text, _ := json.Marshal(b)
			body = strings.ToLower(string(text))
		}
		resp.Body.Close()

		if resp.StatusCode != test.status || !strings.Contains(body, strings.ToLower(test.want)) {
			t.Errorf("%.40s: got %d %s, want %d %s", test.path, resp.StatusCode, body, test.status, test.want)
		}
		if f := <-g.log; f.Status != test.status || strings.Contains(f.Route, "key") {
			t.Errorf("%.40s: got %d %s in the log, want %d", test.path, f.Status, f.Route, test.status)
		}
	}
}

func TestProtocol(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	c := g.dial("apikey=key&vsn=2.0.0")

	c.sync()
	for _, test := range []struct{ send, want string }{
		{`[null,"1","realtime:x","broadcast",{}]`, `[null,"1","realtime:x","phx_reply",` + unmatched},
		{`[null,"1","other","phx_join",{}]`, `[null,"1","other","phx_reply",` + unmatched},
		{`[null,"1","phoenix","other",{}]`, `[null,"1","phoenix","phx_reply",` + unmatched},
		{`["1","1","realtime:","phx_join",{}]`, `["1","1","realtime:","phx_reply",{"status":"error","response":` +
			`{"reason":"The topic has 1 to 246 bytes after realtime:"}}]`},
		{`["1","1","realtime:x","phx_join",[]]`, `["1","1","realtime:x","phx_reply",{"status":"error","response":` +
			`{"reason":"The payload of the join is malformed"}}]`},
		{`["7","7","realtime:x","phx_leave",{}]`, `["7","7","realtime:x","phx_reply",{"status":"ok","response":{}}]`},
	} {
		c.send(test.send)
		c.want(test.want)
	}

	c.join("x", quiet)
	c.send(`["1","2","realtime:x","other",{}]`)
	c.want(`["1","2","realtime:x","phx_reply",` + unmatched)
	c.send(`["5","2","realtime:x","broadcast",{}]`)
	c.want(`["5","2","realtime:x","phx_reply",` + unmatched)

	// A second join replaces the first.
	c.send(`["3","3","realtime:x","phx_join",{"config":{"broadcast":{"self":true},"presence":{"enabled":false}}}]`)
	c.want(`["3","3","realtime:x","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]`)
	c.send(`["3","4","realtime:x","broadcast",{"type":"broadcast","event":"e","payload":{"a":1}}]`)
	c.want("\x04\x0a\x01\x00\x01realtime:xe" + `{"a":1}`)
	c.send(`["1","5","realtime:x","phx_leave",{}]`)
	c.want(`["1","5","realtime:x","phx_reply",{"status":"ok","response":{}}]`)
	c.send(`["3","6","realtime:x","phx_leave",{}]`)
	c.want(`["3","6","realtime:x","phx_reply",{"status":"ok","response":{}}]`)
	c.want(`["3","3","realtime:x","phx_close",{}]`)
	c.send(`["3","7","realtime:x","broadcast",{}]`)
	c.want(`["3","7","realtime:x","phx_reply",` + unmatched)
	c.sync()
}

const unmatched = `{"status":"error","response":{"reason":"unmatched topic"}}]`

// TestBroadcast sends between clients of both serializers, and over HTTP.
func TestBroadcast(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	ann, ben := g.dial("apikey=key&vsn=2.0.0"), g.dial("apikey=key&vsn=1.0.0")
	ann.join("x", `{"broadcast":{"ack":true},"presence":{"enabled":false}}`)
	ben.send(`{"topic":"realtime:x","event":"phx_join","payload":{"config":{"broadcast":{"self":true},` +
		`"presence":{"enabled":false}}},"ref":"1"}`)
	ben.want(`{"topic":"realtime:x","event":"phx_reply","payload":{"status":"ok","response":{"postgres_changes":[]}},` +
		`"ref":"1","join_ref":null}`)

	toBen := func(event, payload string) string {
		return `{"topic":"realtime:x","event":"broadcast","payload":{"type":"broadcast","event":"` + event +
			`","payload":` + payload + `},"ref":null,"join_ref":null}`
	}
	const acknowledged = `["1","2","realtime:x","phx_reply",{"status":"ok","response":{}}]`

	ann.sendBytes("\x03\x01\x01\x0a\x03\x00\x01" + "12realtime:xcur" + `{"a":1}`)
	ann.want(acknowledged)
	ben.want(toBen("cur", `{"a":1}`))

	ann.sendBytes("\x03\x01\x01\x0a\x03\x00\x00" + "12realtime:xcur" + "\xff\x00") // not for 1.0.0
	ann.want(acknowledged)

	ben.send(`{"topic":"realtime:x","event":"broadcast","payload":{"type":"broadcast","event":"hi"},"ref":"2"}`)
	ben.want(toBen("hi", `{}`))
	ann.want("\x04\x0a\x02\x00\x01realtime:xhi{}")

	for _, test := range []struct {
		path, contentType, body string
		status                  int
		ann, ben                string // message; "": none
	}{
		{"/api/broadcast?apikey=key", "application/json",
			`{"messages":[{"topic":"x","event":"a","payload":{"b":2}},{"topic":"none","event":"a"}]}`, 202,
			"\x04\x0a\x01\x00\x01realtime:xa" + `{"b":2}`, toBen("a", `{"b":2}`)},
		{"/api/broadcast/x/events/e%2Ff?apikey=key", "application/json", `[1]`, 202,
			"\x04\x0a\x03\x00\x01realtime:xe/f[1]", toBen("e/f", `[1]`)},
		{"/api/broadcast/x/events/e?apikey=key", "application/octet-stream", "\xff", 202,
			"\x04\x0a\x01\x00\x00realtime:xe\xff", ""},
		{"/api/broadcast/x/events/e?apikey=key", "application/json", `{`, 400, "", ""},
		{"/api/broadcast/x/events/e?apikey=key", "application/json", "\"\xff\"", 400, "", ""},
		{"/api/broadcast/x/events/e?apikey=wrong", "application/json", `{}`, 401, "", ""},
		{"/api/broadcast/x/events/e", "application/json", `{}`, 401, "", ""},
		{"/api/broadcast/x/events/e?apikey=key&private=true", "application/json", `{}`, 403, "", ""},
		{"/api/broadcast/x/events/e?apikey=key", "application/json", strings.Repeat("1", maxPayload+1), 413, "", ""},
		{"/api/broadcast/" + strings.Repeat("x", maxTopic+1) + "/events/e?apikey=key", "", `{}`, 400, "", ""},
		{"/api/broadcast/x/events/" + strings.Repeat("x", maxWord+1) + "?apikey=key", "", `{}`, 413, "", ""},
		{"/api/broadcast/x?apikey=key", "", `{}`, 404, "", ""},
		{"/api/broadcast?apikey=key", "", `{}`, 400, "", ""},
		{"/api/broadcast?apikey=key", "", `{"messages":[{"topic":"","event":"a"}]}`, 400, "", ""},
		{"/api/broadcast?apikey=key", "", `{"messages":[{"topic":"x","event":"a"},{"topic":"y","private":true}]}`, 403, "", ""},
		{"/api/broadcast?apikey=secret", "", `{"messages":[{"topic":"x","event":"p","private":true}]}`, 202, "", ""},
		{"/api/broadcast?apikey=key", "", `{"messages":[` + strings.Repeat(`{},`, maxBatch) + `{}]}`, 413, "", ""},
	} {
		resp, err := http.Post(g.url+test.path, test.contentType, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()

		if resp.StatusCode != test.status {
			t.Errorf("%.60s %.40s: got %d, want %d", test.path, test.body, resp.StatusCode, test.status)
		}
		if test.ann != "" {
			ann.want(test.ann)
		}
		if test.ben != "" {
			ben.want(test.ben)
		}
	}
	ann.sync()

	ann.send(`["1","2","realtime:x","broadcast",{"event":"` + strings.Repeat("e", maxWord+1) + `","payload":{}}]`)
	ann.wantPart("The event is longer than 255 bytes")
	ann.send(`["1","2","realtime:x","broadcast",{"event":"e","payload":"` + strings.Repeat("p", maxPayload) + `"}]`)
	ann.wantPart("The payload is larger than 262144 bytes")
	ann.send(`["1","2","realtime:x","broadcast",[]]`)
	ann.wantPart("A broadcast is a JSON object")
}

func TestPresence(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	ann, ben := g.dial("apikey=key&vsn=2.0.0"), g.dial("apikey=key&vsn=2.0.0")
	ann.join("x", `{"presence":{"key":"ann"}}`)
	ann.want(`["1",null,"realtime:x","presence_state",{}]`)
	ben.join("x", quiet)

	ann.send(`["1","2","realtime:x","presence",{"type":"presence","event":"track","payload":{"at":1}}]`)
	ann.want(`["1","2","realtime:x","phx_reply",{"status":"ok","response":{}}]`)
	ann.wantPart(`"presence_diff",{"joins":{"ann":{"metas":[{"at":1,"phx_ref":"`)

	// A track enables presence, and a client without a key gets one.
	ben.send(`["1","2","realtime:x","presence",{"type":"presence","event":"track","payload":{}}]`)
	ben.wantPart(`"presence_state",{"ann":{"metas":[{"at":1,"phx_ref":"`)
	ben.want(`["1","2","realtime:x","phx_reply",{"status":"ok","response":{}}]`)
	diff := ann.wantPart(`"presence_diff",{"joins":{"`)
	_, key, _ := strings.Cut(diff, `{"joins":{"`)
	if _, err := uuid.Parse(key[:36]); err != nil {
		t.Errorf("got %s, want a UUID as the key", diff)
	}
	ben.wantPart(`"presence_diff"`)

	ann.send(`["1","3","realtime:x","presence",{"type":"presence","event":"untrack"}]`)
	ann.want(`["1","3","realtime:x","phx_reply",{"status":"ok","response":{}}]`)
	ben.wantPart(`"presence_diff",{"joins":{},"leaves":{"ann":`)
	ann.wantPart(`"presence_diff"`)

	for _, bad := range []string{`{"event":"other"}`, `[]`, `{"event":"track","payload":[]}`,
		`{"event":"track","payload":{"x":"` + strings.Repeat("x", realtime.MaxPresencePayload) + `"}}`} {
		ann.send(`["1","4","realtime:x","presence",` + bad + `]`)
		ann.wantPart(`{"status":"error"`)
	}

	ben.conn.CloseNow()
	ann.wantPart(`"presence_diff",{"joins":{},"leaves":{"` + key[:36])

	ann.send(`["8","8","realtime:y","phx_join",{"config":{"presence":{"key":"` + strings.Repeat("k", 1000_000) + `"}}}]`)
	ann.wantPart("A presence has a key of at most 255 bytes")
}

// TestHostileFrames checks that a client that does not speak the protocol is closed, with a reason.
func TestHostileFrames(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	text := func(s string) func(*client) { return func(c *client) { c.send(s) } }
	binary := func(s string) func(*client) { return func(c *client) { c.sendBytes(s) } }
	for _, test := range []struct {
		name, query string
		send        func(*client)
		code        websocket.StatusCode
	}{
		{"no JSON", "apikey=key&vsn=2.0.0", text(`{`), statusMalformed},
		{"other JSON", "apikey=key&vsn=2.0.0", text(`{"topic":"phoenix","event":"heartbeat"}`), statusMalformed},
		{"list in 1.0.0", "apikey=key", text(`[null,"1","phoenix","heartbeat",{}]`), statusMalformed},
		{"deep", "apikey=key&vsn=2.0.0", text(`[null,null,"t","e",` + strings.Repeat("[", 20_000)), statusMalformed},
		{"bytes in 1.0.0", "apikey=key", binary("\x03\x00\x00\x01\x00\x00\x00t"), statusUnsupported},
		{"garbage", "apikey=key&vsn=2.0.0", binary("\x00\xff\xfe garbage"), statusMalformed},
		{"too large", "apikey=key&vsn=2.0.0", text(`"` + strings.Repeat("x", maxFrame) + `"`),
			websocket.StatusMessageTooBig},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := g.dial(test.query)
			test.send(c)
			c.wantClose(test.code, "")
		})
	}
}

// TestJoinsAreBounded joins as often as it can.
func TestJoinsAreBounded(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	c := g.dial("apikey=key&vsn=2.0.0")
	const joins = 300 // more would be read more slowly
	go func() {
		for i := range joins {
			_ = c.conn.Write(t.Context(), websocket.MessageText,
				fmt.Appendf(nil, `["1","1","realtime:%d","phx_join",{"config":%s}]`, i, quiet))
		}
	}()

	joined, refused := 0, 0
	for range joins {
		if got := c.read(); strings.Contains(got, `"ok"`) {
			joined++
		} else if strings.Contains(got, "Too many joins per second") || strings.Contains(got, "Too many channels") {
			refused++
		} else {
			t.Fatal(got)
		}
	}
	maxChannels := event.DefaultLimits.ChannelsPerSocket
	if joined != maxChannels || refused != joins-maxChannels {
		t.Errorf("got %d joined and %d refused, want %d and %d", joined, refused, maxChannels, joins-maxChannels)
	}
	if got := g.server.Hub.Stats(g.project.uuid).Members; got != maxChannels {
		t.Errorf("got %d members, want %d", got, maxChannels)
	}
}

// TestClose checks that a stopping server tells its clients, and that the log has each socket once.
func TestClose(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	c := g.dial("apikey=key&vsn=2.0.0")
	c.join("x", quiet)
	closed := make(chan struct{})
	go func() { g.server.Close(); close(closed) }()
	c.wantClose(statusGoingAway, "the server is stopping")
	<-closed

	f := <-g.log
	if f.Status != 101 || f.ErrorText != "the server is stopping" || g.server.Hub.Stats(g.project.uuid).Members != 0 ||
		g.server.Sockets() != 0 {
		t.Errorf("got %+v", f.Request)
	}

	late := g.dial("apikey=key&vsn=2.0.0")
	late.wantClose(statusGoingAway, "the server is stopping")
}
