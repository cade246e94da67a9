package server_test

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestStreamOfChanges: a client without a library follows a table by Server-Sent Events, leaves,
// and continues where it was.
func TestStreamOfChanges(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/sql", `{"query": "create table public.todos (id int primary key, title text, done boolean); `+
		`alter table public.todos disable row level security; grant all on public.todos to anon; `+
		`alter publication supabase_realtime add table public.todos", "read_only": false}`).Want(200)
	key := a.Post("/projects/"+a.Project+"/keys", `{"name": "app", "kind": "publishable"}`).Want(201).
		Metadata("key").(string)
	path := "/projects/" + a.Project + "/realtime/v1/changes?table=todos&select=id,title&filter=done=is.false"
	insert := func(row string) {
		t.Helper()
		a.Anonymous().Send("POST", "/projects/"+a.Project+"/rest/v1/todos", row, "apikey: "+key).Want(201)
	}

	events := openStream(t, a, path, "apikey: "+key)
	subscribed := events.next()
	if subscribed.kind != "subscribed" {
		t.Fatalf("got %v first", subscribed)
	}

	insert(`{"id": 1, "title": "one", "done": false}`)
	first := events.next()
	if first.kind != "INSERT" || !strings.Contains(first.data, `"record":{"id":1,"title":"one"}`) || first.id == "" {
		t.Errorf("got %v", first)
	}
	events.close()

	insert(`{"id": 2, "title": "done", "done": true}`)
	insert(`{"id": 3, "title": "three", "done": false}`)

	events = openStream(t, a, path, "apikey: "+key, "Last-Event-ID: "+first.id)
	events.next()
	if e := events.next(); e.kind != "INSERT" || !strings.Contains(e.data, `"id":3`) {
		t.Errorf("after the pause: got %v", e)
	}
	events.close()

	// A restored database has another history.
	backup := a.Post("/backups", `{}`).Want(201).Get("uuid").(string)
	until := func(path string) {
		t.Helper()
		eventually(t, path, func() bool { return a.Get(path).Want(200).Get("status") == "completed" })
	}
	until("/backups/" + backup)
	events = openStream(t, a, path, "apikey: "+key)
	events.next()
	until("/restores/" + a.Post("/backups/"+backup+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string))
	if e := events.next(); e.kind != "resync" {
		t.Errorf("during a restore: got %v", e)
	}
	events = openStream(t, a, path, "apikey: "+key, "Last-Event-ID: "+first.id)
	if e := events.next(); e.kind != "resync" {
		t.Errorf("after a restore: got %v", e)
	}
	insert(`{"id": 4, "title": "four", "done": false}`)
	if e := events.next(); e.kind != "INSERT" {
		t.Errorf("after a restore: got %v", e)
	}
	events.close()

	// Members follow with their own token, as somebody else too.
	for i, member := range []*apitest.API{a, a.Member(5)} {
		events = openStream(t, member, path, "Authorization: Bearer "+member.Token, "X-Socle-As: anon")
		events.next()
		insert(`{"id": ` + strconv.Itoa(10+i) + `, "title": "five", "done": false}`)
		if e := events.next(); e.kind != "INSERT" {
			t.Errorf("as a member: got %v", e)
		}
		events.close()
	}
	a.OtherUser().Send("GET", path, "").Want(404)

	a.Anonymous().Send("GET", path, "", "apikey: wrong").Want(401)
	a.Anonymous().Send("GET", path+"&x=1", "", "apikey: "+key).Want(400)
	a.Anonymous().Send("GET", strings.Replace(path, "todos", "absent", 1), "", "apikey: "+key).Want(400)
	a.Anonymous().Send("GET", path, "", "apikey: "+key, "Last-Event-ID: garbage").Want(400)
}

// streamEvent is a Server-Sent Event.
type streamEvent struct{ id, kind, data string }

// eventStream is an open response of Server-Sent Events.
type eventStream struct {
	t      *testing.T
	events chan streamEvent
	close  func()
}

// openStream opens a stream of events.
func openStream(t *testing.T, a *apitest.API, path string, headers ...string) *eventStream {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	request := a.Anonymous().Request("GET", path, http.NoBody, headers...).WithContext(ctx)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %s %s", response.Status, response.Header.Get("Content-Type"))
	}

	s := &eventStream{t: t, events: make(chan streamEvent), close: cancel}
	t.Cleanup(cancel)
	go func() {
		defer close(s.events)
		defer response.Body.Close()

		var e streamEvent
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				if e.kind == "" { // only a new position
					continue
				}
				select {
				case s.events <- e:
				case <-ctx.Done():
					return
				}
				e = streamEvent{}
			}
		}
	}()

	return s
}

// next returns the next event.
func (s *eventStream) next() streamEvent {
	s.t.Helper()

	e, ok := <-s.events
	if !ok {
		s.t.Fatal("the stream has ended")
	}

	return e
}
