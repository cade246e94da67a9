package realtimeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

// policies allow the actions that they list: role, subject, action, topic, extension.
type policies struct {
	mu      sync.Mutex
	allowed string
	asked   []string
}

func (p *policies) ask(caller actor.Actor, action, topic, extension string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	question := fmt.Sprintf("%s %s %s %s;", caller.Subject, action, topic, extension)
	p.asked = append(p.asked, question)
	if strings.Contains(p.allowed, "fail") {
		return false, errors.New("secret text")
	}

	return strings.Contains(p.allowed, question), nil
}

func (p *policies) MayReceive(_ context.Context, caller actor.Actor, topic, extension string) (bool, error) {
	return p.ask(caller, "receives", topic, extension)
}

func (p *policies) MaySend(_ context.Context, caller actor.Actor, topic, extension string) (bool, error) {
	return p.ask(caller, "sends", topic, extension)
}

func (p *policies) allow(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.allowed, p.asked = text, nil
}

func (p *policies) questions() string {
	p.mu.Lock()
	defer p.mu.Unlock()

	return strings.Join(p.asked, "")
}

const refusedRead = `{"status":"error","response":{"reason":"Unauthorized: You do not have permissions to read from ` +
	`this Channel topic: x"}}]`

func TestPrivateChannels(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	c := g.dial("apikey=key&vsn=2.0.0")
	join := func(token string) {
		c.send(`["1","1","realtime:x","phx_join",{"config":{"private":true,"broadcast":{"ack":true}},"access_token":` + token + `}]`)
	}

	join(`null`)
	c.want(`["1","1","realtime:x","phx_reply",` + refusedRead)
	p := &policies{}
	g.project.policy = p
	join(`"{\"role\":\"authenticated\",\"sub\":\"ann\"}"`)
	c.want(`["1","1","realtime:x","phx_reply",` + refusedRead)

	p.allow("fail")
	join(`null`)
	c.want(`["1","1","realtime:x","phx_reply",{"status":"error","response":{"reason":"Internal error"}}]`)

	p.allow("ann receives x broadcast;")
	join(`"{\"role\":\"authenticated\",\"sub\":\"ann\"}"`)
	c.want(`["1","1","realtime:x","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]`)
	for range 2 {
		c.send(`["1","2","realtime:x","broadcast",{"event":"e","payload":{}}]`)
		c.wantPart("permissions to write to this Channel topic: x")
		c.send(`["1","2","realtime:x","presence",{"event":"track","payload":{}}]`)
		c.wantPart("permissions to write to this Channel topic: x")
	}
	if got, want := p.questions(), "ann receives x broadcast;ann receives x presence;ann sends x broadcast;"+
		"ann sends x presence;"; got != want {
		t.Errorf("got questions %s, want each once: %s", got, want)
	}

	// Another token means other decisions.
	p.allow("ben receives x broadcast;ben sends x broadcast;ben receives x presence;ben sends x presence;")
	c.send(`["1","3","realtime:x","access_token",{"access_token":"{\"role\":\"authenticated\",\"sub\":\"ben\"}"}]`)
	c.send(`["1","4","realtime:x","broadcast",{"event":"e","payload":{}}]`)
	c.want(`["1","4","realtime:x","phx_reply",{"status":"ok","response":{}}]`)
	c.send(`["1","5","realtime:x","presence",{"event":"track","payload":{}}]`)
	c.want(`["1",null,"realtime:x","presence_state",{}]`)
	c.want(`["1","5","realtime:x","phx_reply",{"status":"ok","response":{}}]`)
	c.wantPart("presence_diff")

	// The public channel of that name is another room.
	outside := g.dial("apikey=key&vsn=2.0.0")
	outside.join("x", quiet)
	outside.send(`["1","2","realtime:x","broadcast",{"event":"e","payload":{}}]`)
	outside.sync()
	c.sync()

	p.allow("")
	c.send(`["1","6","realtime:x","access_token",{"access_token":"{\"role\":\"authenticated\",\"sub\":\"cleo\"}"}]`)
	c.wantPart(`"system",{"extension":"system","status":"error","message":"Unauthorized: You do not have`)
	c.want(`["1","1","realtime:x","phx_close",{}]`)

	secret := g.dial("apikey=secret&vsn=2.0.0")
	secret.send(`["1","1","realtime:x","phx_join",{"config":{"private":true,"presence":{"enabled":false}}}]`)
	secret.wantPart(`"ok"`)
	if got := p.questions(); got != "cleo receives x broadcast;" {
		t.Errorf("got questions %s, want none for a secret key", got)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	c := g.dial("apikey=key&vsn=2.0.0")
	token := func(expires time.Duration) string {
		at := float64(time.Now().Add(expires).UnixMilli()) / 1000
		return fmt.Sprintf(`{\"role\":\"authenticated\",\"exp\":%f}`, at)
	}
	join := func(topic, token string) {
		c.send(`["1","1","realtime:` + topic + `","phx_join",{"config":` + quiet + `,"access_token":"` + token + `"}]`)
	}

	for _, test := range []struct{ token, reason string }{
		{"wrong", "InvalidJWTToken: The key or token is not valid for this project"},
		{token(-time.Hour), "InvalidJWTToken: Token has expired 3600 seconds ago"},
		{`{\"role\":\"postgres\"}`, "The role of the token is none of the channels"},
	} {
		join("x", test.token)
		c.want(`["1","1","realtime:x","phx_reply",{"status":"error","response":{"reason":"` + test.reason + `"}}]`)
	}

	for _, same := range []string{"", "key", "sb_publishable_other"} {
		join("x", same)
		c.wantPart(`"ok"`)
		c.send(`["1","2","realtime:x","access_token",{"access_token":"` + same + `"}]`)
		c.sync()
	}
	c.send(`["1","2","realtime:x","access_token",{"access_token":null}]`)
	c.sync()

	// A token that expires ends its channel, unless it was replaced.
	join("short", token(time.Second))
	c.wantPart(`"ok"`)
	join("renewed", token(time.Second))
	c.wantPart(`"ok"`)
	c.send(`["1","2","realtime:renewed","access_token",{"access_token":"` + token(time.Hour) + `"}]`)
	c.wantPart(`["1",null,"realtime:short","system",{"extension":"system","status":"error","message":"Token has expired`)
	c.want(`["1","1","realtime:short","phx_close",{}]`)
	c.send(`["1","3","realtime:short","broadcast",{}]`)
	c.wantPart("unmatched topic")

	c.send(`["1","4","realtime:renewed","access_token",{"access_token":"wrong"}]`)
	c.wantPart(`"message":"The key or token is not valid for this project"`)
	c.want(`["1","1","realtime:renewed","phx_close",{}]`)
	c.send(`["1","4","realtime:x","access_token",[]]`)
	c.wantPart(`"message":"The payload of access_token is malformed"`)
	c.want(`["1","1","realtime:x","phx_close",{}]`)
	c.sync()
}

// TestFlags joins with flags as Supabase takes them: booleans, or their texts.
func TestFlags(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	c := g.dial("apikey=key&vsn=2.0.0")
	join := func(config string) { c.send(`["1","1","realtime:x","phx_join",{"config":` + config + `}]`) }
	joined := `["1","1","realtime:x","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]`

	for _, yes := range []string{`true`, `"true"`, `"True"`} {
		join(`{"broadcast":{"ack":` + yes + `,"self":` + yes + `},"presence":{"enabled":"false"},"private":"false"}`)
		c.want(joined)
		c.send(`["1","2","realtime:x","broadcast",{"event":"e","payload":{}}]`)
		c.wantPart("realtime:xe") // a binary frame
		c.want(`["1","2","realtime:x","phx_reply",{"status":"ok","response":{}}]`)
	}

	join(`{"private":"TRUE"}`)
	c.wantPart("permissions to read from")
	for _, malformed := range []string{`"yes"`, `""`, `1`, `{}`} {
		join(`{"private":` + malformed + `}`)
		c.wantPart("The payload of the join is malformed")
	}

	join(`{"broadcast":{"replication_ready":true},"presence":{"enabled":false}}`)
	c.want(joined)
	c.want(`["1",null,"realtime:x","system",{"extension":"system","status":"ok",` +
		`"message":"Replication connection established","channel":"x"}]`)

	g = newRig(t)
	g.server.Hub.Connect(silentBus{})
	g.server.Hub.Connected()
	c = g.dial("apikey=key&vsn=2.0.0")
	join(`{"broadcast":{"replication_ready":"true"},"presence":{"enabled":false}}`)
	c.want(joined)
	c.wantPart(`{"extension":"system","status":"error","message":"Replication connection was not established in time"`)
}

// silentBus has another server, which says nothing.
type silentBus struct{}

func (silentBus) Active() bool                          { return true }
func (silentBus) Publish(fair.Key, string, []byte) bool { return true }
func (silentBus) Send(fair.Key, uuid.UUID, []byte) bool { return true }
func (silentBus) Subscribe(string) (cancel func())      { return func() {} }
func (silentBus) Barrier() <-chan struct{}              { return make(chan struct{}) }

// TestChecks checks what happens to open sockets when keys and projects change.
func TestChecks(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name   string
		change func(*fakeProject)
		ann    string // reason; "": stays
		ben    string
	}{
		{"nothing", func(*fakeProject) {}, "", ""},
		{"key deleted", func(p *fakeProject) { p.refused = map[string]bool{"key": true} },
			"the key is no longer valid", ""},
		{"paused", func(p *fakeProject) { p.failure = fault.New(fault.Conflict, "The project is paused") },
			"the project is paused", "the project is paused"},
		{"purged", func(p *fakeProject) { p.failure = fault.New(fault.NotFound, "Project not found") },
			"project not found", "project not found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			g := newRig(t)
			ann, ben := g.dial("apikey=key&vsn=2.0.0"), g.dial("apikey=secret&vsn=2.0.0")
			ann.sync()
			ben.sync()

			g.project.mu.Lock()
			test.change(g.project)
			g.project.mu.Unlock()
			g.server.mu.Lock()
			tenant := g.server.tenants[g.project.uuid]
			g.server.mu.Unlock()
			tenant.check(t.Context())

			for c, reason := range map[*client]string{ann: test.ann, ben: test.ben} {
				if reason == "" {
					c.sync()
				} else {
					c.wantClose(statusPolicyViolation, reason)
				}
			}
		})
	}

	g := newRig(t)
	c := g.dial("apikey=key&vsn=2.0.0")
	c.join("y", quiet)
	c.send(`["1","1","realtime:x","phx_join",{"config":` + quiet + `,"access_token":"{\"sub\":\"ann\"}"}]`)
	c.wantPart(`"ok"`)
	g.project.mu.Lock()
	g.project.refused = map[string]bool{`{"sub":"ann"}`: true}
	g.project.mu.Unlock()
	for k := range g.server.tenants[g.project.uuid].sockets {
		k.recheck(t.Context(), g.project)
	}
	c.wantPart(`"message":"The key or token is not valid`)
	c.want(`["1","1","realtime:x","phx_close",{}]`)
	c.sync()
}

// feed has the changes of a project.
type feed struct {
	follows chan followed
}

type followed struct {
	caller   actor.Actor
	bindings []event.Binding
	cursor   string
	answer   chan error // failure that Follow returns
	follower *follower
}

func (f feed) Follow(
	ctx context.Context, caller actor.Actor, bindings []event.Binding, cursor string,
) (Follower, error) {
	next := followed{caller, bindings, cursor, make(chan error),
		&follower{make(chan any), make(chan string, 10), make(chan struct{})}}
	select {
	case f.follows <- next:
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	return next.follower, <-next.answer
}

type follower struct {
	next    chan any // event.Change or error
	callers chan string
	closed  chan struct{}
}

func (f *follower) Next(ctx context.Context) ([]event.Change, error) {
	select {
	case v := <-f.next:
		if err, ok := v.(error); ok {
			return nil, err
		}
		return []event.Change{v.(event.Change)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *follower) SetCaller(a actor.Actor) { f.callers <- a.Subject }
func (f *follower) Cursor() string          { return "c1" }
func (f *follower) Close()                  { close(f.closed) }

func TestChanges(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	c := g.dial("apikey=key&vsn=2.0.0")
	const joinPayload = `{"config":{"postgres_changes":[{"event":"*","schema":"public","table":"todos","filter":"id=eq.1"},` +
		`{"event":"INSERT","schema":"public","table":null,"select":["a","b"]}],"presence":{"enabled":false},"resume":"c0"}}]`
	const joined = `["1","1","realtime:x","phx_reply",{"status":"ok","response":{"postgres_changes":[` +
		`{"id":1,"event":"*","schema":"public","table":"todos","filter":"id=eq.1"},` +
		`{"id":2,"event":"INSERT","schema":"public","select":"a,b"}]}}]`
	system := func(status, message, more string) string {
		return `["1",null,"realtime:x","system",{"extension":"postgres_changes","status":"` + status + `","message":"` +
			message + `","channel":"x"` + more + `}]`
	}

	c.send(`["1","1","realtime:x","phx_join",` + joinPayload)
	c.want(joined)
	c.want(system("error", "Changes of rows are not available", ""))

	f := feed{make(chan followed)}
	g.project.feed = f
	c.send(`["1","1","realtime:x","phx_join",` + joinPayload)
	c.want(joined)
	first := <-f.follows
	want := []event.Binding{{Event: "*", Schema: "public", Table: "todos", Filter: "id=eq.1"},
		{Event: "INSERT", Schema: "public", Select: "a,b"}}
	if !slices.Equal(first.bindings, want) || first.cursor != "c0" || first.caller.Role != "anon" {
		t.Errorf("got %+v", first)
	}

	c.sync() // not subscribed before changes flow
	first.answer <- nil
	c.want(system("ok", "Subscribed to PostgreSQL", `,"cursor":"c1"`))

	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600))
	first.follower.next <- event.Change{Bindings: []int{0, 1}, Type: event.Insert, Schema: "public", Table: "todos",
		At: at, Columns: []event.Column{{Name: "id", Type: "int4"}}, Record: json.RawMessage(`{"id":1}`), Cursor: "c2"}
	c.want(`["1",null,"realtime:x","postgres_changes",{"ids":[1,2],"data":{"type":"INSERT","schema":"public","table":"todos",` +
		`"commit_timestamp":"2026-01-02T02:04:05.0000006Z","columns":[{"name":"id","type":"int4"}],"record":{"id":1},` +
		`"errors":null},"cursor":"c2"}]`)
	first.follower.next <- event.Change{Bindings: []int{0}, Type: event.Delete, Schema: "public", Table: "todos",
		At: at, Old: json.RawMessage(`{"id":1}`), Oversized: true, Cursor: "c3"}
	c.want(`["1",null,"realtime:x","postgres_changes",{"ids":[1],"data":{"type":"DELETE","schema":"public","table":"todos",` +
		`"commit_timestamp":"2026-01-02T02:04:05.0000006Z","columns":[],"old_record":{"id":1},` +
		`"errors":["Error 413: Payload Too Large"]},"cursor":"c3"}]`)

	c.send(`["1","3","realtime:x","access_token",{"access_token":"{\"sub\":\"ben\"}"}]`)
	if a, b := <-first.follower.callers, <-first.follower.callers; a != "" || b != "ben" {
		t.Errorf("got callers %q, %q, want those of the key and the token", a, b)
	}

	first.follower.next <- event.ErrResync
	c.want(system("error", event.ErrResync.Detail, `,"reason":"resync"`))
	again := <-f.follows
	if again.cursor != "" || again.caller.Subject != "ben" {
		t.Errorf("got cursor %q, caller %q", again.cursor, again.caller.Subject)
	}
	<-first.follower.closed
	again.answer <- nil
	c.want(system("ok", "Subscribed to PostgreSQL", `,"cursor":"c1"`))

	again.follower.next <- errors.New("secret text")
	c.want(system("error", "Internal error", ""))
	third := <-f.follows
	if third.cursor != "c1" {
		t.Errorf("got cursor %q, want that of the follower", third.cursor)
	}
	third.answer <- fault.New(fault.Invalid, "The table todos does not exist")
	c.want(system("error", "The table todos does not exist", ""))

	c.send(`["2","2","realtime:x","phx_join",` + joinPayload)
	c.wantPart(`"ok"`)
	last := <-f.follows
	last.answer <- nil
	c.wantPart("Subscribed to PostgreSQL")
	c.send(`["2","3","realtime:x","phx_leave",{}]`)
	c.wantPart("phx_reply")
	c.wantPart("phx_close")
	<-last.follower.closed

	c.send(`["1","1","realtime:x","phx_join",{"config":{"postgres_changes":[` + strings.Repeat(`{},`, maxBindings) + `{}]}}]`)
	c.wantPart("A channel has at most 100 postgres_changes")
}
