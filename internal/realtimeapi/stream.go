package realtimeapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
)

// serveStream sends changes as Server-Sent Events, for curl and for EventSource in browsers. Each
// event's id is a cursor: a client that sends it as Last-Event-ID continues after that event.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request, p project) error {
	ctx := r.Context()
	v, err := identify(r, p)
	if err != nil {
		return err
	}

	bindings, err := streamBindings(r)
	if err != nil {
		return err
	}

	share := p.share(ctx)
	place := s.place(share, s.limits(ctx, p))
	if place == nil {
		return fault.New(fault.TooMany, "Too many connections").WithCode("too_many_sockets")
	}
	defer place.Release()

	source := p.changes()
	if source == nil {
		return errNoChanges
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()

	st := &stream{w: w, to: http.NewResponseController(w), project: p, caller: v}
	cursor := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("cursor"))
	follower, err := source.Follow(ctx, v.Actor, bindings, cursor)
	resync := errors.Is(err, event.ErrResync)
	if resync {
		follower, err = source.Follow(ctx, v.Actor, bindings, "")
	}
	if err != nil {
		return err
	}
	defer follower.Close()

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	if resync {
		err = st.send("resync", follower.Cursor(), resyncData)
	} else {
		err = st.send("subscribed", follower.Cursor(), emptyObject)
	}

	for err == nil {
		err = st.forward(httpx.WithShare(ctx, share), follower)
	}

	return nil // the response has begun: its end tells the client to come again
}

// streamBindings returns what a stream's query selects: all changes to a table, or those of a kind.
func streamBindings(r *http.Request) ([]event.Binding, error) {
	query := r.URL.Query()
	if len(r.URL.RawQuery) > maxQuery {
		return nil, fault.New(fault.Invalid, "The query string is longer than %d bytes", maxQuery)
	}
	for name, values := range query {
		switch name {
		case "schema", "table", "event", "filter", "select", "cursor", "apikey":
			if len(values) > 1 {
				return nil, fault.New(fault.Invalid, "The parameter %s is given twice", name)
			}
		default:
			return nil, fault.New(fault.Invalid, "The parameter %s is unknown; a condition is filter=column=operator.value", name)
		}
	}

	b := event.Binding{Schema: cmp.Or(query.Get("schema"), "public"), Table: query.Get("table"),
		Filter: query.Get("filter"), Select: query.Get("select")}
	kinds := []string{event.Any, event.Truncate}
	if kind := strings.ToUpper(query.Get("event")); kind != "" && kind != event.Any {
		kinds = []string{kind}
	}

	var bindings []event.Binding
	for _, kind := range kinds {
		b.Event = kind
		bindings = append(bindings, b)
	}

	return bindings, nil
}

// stream is a response of Server-Sent Events.
type stream struct {
	w       http.ResponseWriter
	to      *http.ResponseController
	project project
	caller  caller
}

var (
	resyncData = []byte(`{"message":"changes after the cursor are no longer kept: read the rows again"}`)

	errStreamOver = errors.New("the stream is over")
)

// forward sends the next changes, or after a while without any a comment. It fails when the stream
// is over: the client is gone, its token has expired, or the project is not active.
func (st *stream) forward(ctx context.Context, f Follower) error {
	wait := checkInterval
	if at := st.caller.expiresAt; !at.IsZero() {
		if wait = min(wait, time.Until(at)); wait <= 0 {
			return errStreamOver
		}
	}

	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()

	changes, err := f.Next(waiting)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return errStreamOver
	case waiting.Err() != nil:
		return st.keepAlive(ctx, f.Cursor())
	default:
		data, _ := json.Marshal(map[string]string{"message": failureText(err)}) // texts have no error
		kind := "error"
		if errors.Is(err, event.ErrResync) {
			kind = "resync"
		}
		return errors.Join(st.send(kind, "", data), errStreamOver)
	}

	for i := range changes {
		if err := st.send(changes[i].Type, changes[i].Cursor, changes[i].Encode(encodeChange)); err != nil {
			return err
		}
	}

	return nil
}

// keepAlive sends the current cursor, after a check that the project is still active.
func (st *stream) keepAlive(ctx context.Context, cursor string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()

	now, err := st.project.current(ctx)
	if err == nil {
		err = now.inactive()
	}
	if kind := fault.Of(err); err != nil && (kind.Kind == fault.NotFound || kind.Kind == fault.Conflict) {
		return errStreamOver
	}

	return st.write([]byte("id: " + cursor + "\n\n"))
}

// send sends an event.
func (st *stream) send(kind, cursor string, data []byte) error {
	var b bytes.Buffer
	if cursor != "" {
		b.WriteString("id: " + cursor + "\n")
	}
	b.WriteString("event: " + kind + "\ndata: ")
	b.Write(data) // JSON on one line
	b.WriteString("\n\n")

	return st.write(b.Bytes())
}

func (st *stream) write(text []byte) error {
	_ = st.to.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every connection has one
	if _, err := st.w.Write(text); err != nil {
		return err
	}

	return st.to.Flush()
}
