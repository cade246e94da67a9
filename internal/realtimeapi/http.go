package realtimeapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/realtime"
)

// serveBatch sends the broadcasts in a JSON body. Either all are allowed, or none is sent.
func (s *Server) serveBatch(w http.ResponseWriter, r *http.Request, p project) error {
	v, err := authenticate(r.Context(), r, p)
	if err != nil {
		return err
	}

	body, lease, err := s.readBody(w, r, p, maxBatchBody)
	if err != nil {
		return err
	}
	defer lease.Release()

	var batch struct {
		Messages []struct {
			Topic, Event string
			Payload      json.RawMessage
			Private      bool
		}
	}
	if !utf8.Valid(body) || json.Unmarshal(body, &batch) != nil || batch.Messages == nil {
		return fault.New(fault.Invalid, "The body is a JSON object with a list of messages")
	}
	if len(batch.Messages) > maxBatch {
		return fault.New(fault.TooLarge, "A request has at most %d messages", maxBatch)
	}

	out := make([]post, 0, len(batch.Messages))
	for _, m := range batch.Messages {
		if m.Payload == nil {
			m.Payload = emptyObject
		}
		out = append(out, post{m.Topic, m.Private, broadcast{event: m.Event, payload: m.Payload}})
	}

	return s.post(w, r, p, v, out, s.limits(r.Context(), p))
}

// serveBroadcast sends the body as a broadcast: JSON, or bytes.
func (s *Server) serveBroadcast(w http.ResponseWriter, r *http.Request, p project, topic, event string) error {
	v, err := authenticate(r.Context(), r, p)
	if err != nil {
		return err
	}

	limits := s.limits(r.Context(), p)
	body, lease, err := s.readBody(w, r, p, int64(limits.PayloadBytes))
	if err != nil {
		return err
	}
	defer lease.Release()

	b := broadcast{event: event, payload: body}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	b.isBinary = kind == "application/octet-stream"
	switch {
	case b.isBinary:
	case len(body) == 0:
		b.payload = emptyObject
	case !utf8.Valid(body) || !json.Valid(body):
		return fault.New(fault.Invalid, "The body must be JSON, or bytes with the type application/octet-stream")
	}

	return s.post(w, r, p, v, []post{{topic, r.URL.Query().Get("private") == "true", b}}, limits)
}

// readBody reads a body of at most limit bytes. The lease on its memory is the caller's.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, p project, limit int64) ([]byte, *fair.Lease, error) {
	ctx := r.Context()
	lease, err := s.Bodies.Acquire(ctx, httpx.In(ctx, p.share(ctx)), limit)
	if err != nil {
		return nil, nil, fault.New(fault.TooMany, "Too many requests").WithCause(err)
	}

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		return body, lease, nil
	}

	lease.Release()
	if _, isLarge := errors.AsType[*http.MaxBytesError](err); isLarge {
		return nil, nil, fault.New(fault.TooLarge, "The body is larger than %d bytes", limit)
	}

	return nil, nil, fault.New(fault.Invalid, "The body can't be read").WithCause(err)
}

// post is a broadcast to a room.
type post struct {
	topic     string
	isPrivate bool
	broadcast
}

// post checks all broadcasts, then sends them and responds.
func (s *Server) post(
	w http.ResponseWriter, r *http.Request, p project, v caller, posts []post, limits event.RealtimeLimits,
) error {
	isAllowed := map[string]bool{} // topics of private channels
	for _, m := range posts {
		if m.topic == "" || len(m.topic) > maxTopic {
			return fault.New(fault.Invalid, "The topic has 1 to %d bytes", maxTopic)
		}
		if err := checkBroadcast(m.broadcast, limits.PayloadBytes); err != nil {
			return err
		}
		if !m.isPrivate || isAllowed[m.topic] {
			continue
		}

		g := grant{true, broadcastEvent}
		ok, err := decide(r.Context(), p, v, m.topic, g)
		if err != nil {
			return err
		}
		if !ok {
			return errUnauthorized(g, m.topic)
		}
		isAllowed[m.topic] = true
	}

	room := realtime.Address{Project: p.id(), Share: p.share(r.Context()), Limits: roomLimits(limits)}
	for _, m := range posts {
		room.Topic, room.Private = m.topic, m.isPrivate
		err := s.Hub.Send(room,
			&realtime.Message{Event: m.event, Payload: m.payload, Binary: m.isBinary})
		if err != nil {
			return err
		}
	}

	w.WriteHeader(http.StatusAccepted)
	return nil
}
