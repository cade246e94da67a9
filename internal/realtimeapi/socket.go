package realtimeapi

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/realtime"
	"github.com/socle-dev/socle/internal/tick"
)

// socket is a client's connection.
type socket struct {
	server     *Server
	tenant     *tenant
	conn       *websocket.Conn
	serializer serializer
	key        string // the handshake's
	share      fair.Key
	openedAt   time.Time
	address    string // the client's
	out        outbox
	idle       *time.Timer // ends a silent connection

	joins, messages realtime.Bucket // the reader's

	mu       sync.Mutex
	channels map[string]*channel // joined ones, by their topic
}

// serveSocket upgrades a request and serves the socket until its end.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request, p project) error {
	if len(r.URL.RawQuery) > maxQuery {
		return fault.New(fault.Invalid, "The query string is longer than %d bytes", maxQuery)
	}

	query := r.URL.Query()
	key := cmp.Or(query.Get("apikey"), r.Header.Get("Apikey"))
	if _, err := verify(r.Context(), p, key); err != nil {
		return err
	}
	if err := p.inactive(); err != nil {
		return err
	}

	serializer, ok := parseSerializer(query.Get("vsn"))
	switch {
	case !ok:
		return fault.New(fault.Invalid, "The serializer vsn must be 1.0.0 or 2.0.0").WithCode("unknown_serializer")
	case r.ProtoMajor != 1, !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		return fault.New(fault.Invalid, "This address takes a WebSocket handshake").WithCode("no_handshake")
	}

	share, limits := p.share(r.Context()), s.limits(r.Context(), p)
	place := s.place(share, limits)
	if place == nil {
		return fault.New(fault.TooMany, "Too many connections").WithCode("too_many_sockets")
	}
	defer place.Release()

	k := &socket{server: s, serializer: serializer, key: strings.Clone(key), share: share,
		openedAt: time.Now().UTC(), address: httpx.From(r.Context()).Client.String(),
		joins:    newBucket(limits.JoinsPerSecond),
		messages: newBucket(limits.MessagesPerSecond)}

	return k.serve(w, r, p, limits)
}

// serve upgrades the request and serves messages until the connection ends.
func (k *socket) serve(w http.ResponseWriter, r *http.Request, p project, limits event.RealtimeLimits) error {
	// Any page may connect, since the key is in the address and not in a cookie.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		httpx.From(r.Context()).Err = nil // Accept has responded
		return nil
	}
	defer conn.CloseNow()

	conn.SetReadLimit(maxFrame)
	clear(r.Header) // up to 64 kB that nothing needs for the socket's life
	k.conn, k.out.conn, k.out.backlogs, k.out.share = conn, conn, k.server.backlogs, k.share
	k.idle = time.AfterFunc(idleTimeout, func() { k.close(statusPolicyViolation, "no heartbeat") })
	defer k.idle.Stop()

	tenant, err := k.server.enter(k, p, limits)
	if err != nil {
		_ = conn.Close(statusGoingAway, "the server is stopping")
		return nil
	}
	k.tenant = tenant
	defer k.server.exit(k, tenant)

	// The end of the request's context is not that of the connection.
	ctx, cancel := context.WithCancel(httpx.WithShare(context.WithoutCancel(r.Context()), k.share))
	defer cancel()
	defer k.leaveAll()

	k.readAll(ctx)

	if _, reason := k.out.outcome(); reason != "" {
		request := httpx.From(r.Context())
		request.ErrorCode, request.ErrorText = "socket_closed", reason
	}

	return nil
}

// readAll serves messages until the connection ends.
func (k *socket) readAll(ctx context.Context) {
	for {
		err := k.readOne(ctx)
		if err == errMalformed {
			k.close(statusMalformed, "malformed message")
			continue // until the client has closed as well
		}
		if err != nil {
			k.out.close(statusGoingAway, "")
			return
		}
	}
}

// readOne reads and serves a message.
func (k *socket) readOne(ctx context.Context) error {
	kind, r, err := k.conn.Reader(ctx)
	if err != nil {
		return err
	}

	k.idle.Reset(messageTimeout)
	defer k.idle.Reset(idleTimeout)

	data, lease, err := k.readFrame(ctx, r)
	if err != nil {
		return err
	}
	defer lease.Release()

	if isClosed, _ := k.out.outcome(); isClosed {
		return nil
	}
	if err := tick.Pause(ctx, k.reserveMessage(time.Now())); err != nil {
		return err
	}

	m, err := k.decode(kind, data)
	if err != nil {
		return err
	}

	k.handle(ctx, m)
	return nil
}

// readFrame reads a frame's data. A large one has a lease on memory.
func (k *socket) readFrame(ctx context.Context, r io.Reader) ([]byte, *fair.Lease, error) {
	data, err := io.ReadAll(io.LimitReader(r, smallFrame))
	if err != nil || len(data) < smallFrame {
		return data, nil, err
	}

	lease, err := k.server.Bodies.Acquire(ctx, k.share, maxFrame)
	if err != nil {
		k.close(statusTryAgainLater, "too many large messages")
		return nil, nil, err
	}

	rest, err := io.ReadAll(r)
	if err != nil {
		lease.Release()
		return nil, nil, err
	}

	return append(data, rest...), lease, nil
}

func (k *socket) decode(kind websocket.MessageType, data []byte) (message, error) {
	switch {
	case kind == websocket.MessageText:
		return k.serializer.decodeText(data)
	case k.serializer == lists:
		return decodePush(data)
	}

	k.close(statusUnsupported, "binary frames need the serializer 2.0.0")
	return message{}, errMalformed
}

// close ends the connection with a reason, which the client reads.
func (k *socket) close(code websocket.StatusCode, reason string) { k.out.close(code, reason) }

// cut ends the connection at once.
func (k *socket) cut() { _ = k.conn.CloseNow() }

// send sends a message.
func (k *socket) send(joinRef, ref ref, topic, event string, payload []byte) {
	k.out.push(frame{data: k.serializer.encodeText(joinRef, ref, topic, event, payload)})
}
