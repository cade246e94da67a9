package realtimeapi

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/cache"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/realtime"
)

// Prefix is the interface's path behind the project's.
const Prefix = "/realtime/v1"

// Changes are the changes of a project's rows.
type Changes interface {
	// Follow follows the changes that match one of the bindings, as far as the caller may see them,
	// from a cursor; "": from now. It returns when no later change can be missed. It fails with
	// Invalid for a binding that does not fit the tables.
	Follow(ctx context.Context, caller actor.Actor, bindings []event.Binding, cursor string) (Follower, error)
}

// Follower receives changes.
type Follower interface {
	// Next waits for changes. It fails with [event.ErrResync] if some are lost.
	Next(ctx context.Context) ([]event.Change, error)
	SetCaller(caller actor.Actor)
	Cursor() string
	Close()
}

// Authorizer decides about private channels by the project's policies. extension is broadcast or
// presence.
type Authorizer interface {
	MayReceive(ctx context.Context, caller actor.Actor, topic, extension string) (bool, error)
	MaySend(ctx context.Context, caller actor.Actor, topic, extension string) (bool, error)
}

// Archive has the messages that private channels replay.
type Archive interface {
	// Replay returns the last n messages to a channel after a time, oldest first.
	Replay(ctx context.Context, topic string, since time.Time, n int) ([]*realtime.Message, error)
}

// Config has the dependencies that projects share.
type Config struct {
	Hub *realtime.Hub
	// Bodies bounds the memory for bodies of requests and large messages.
	Bodies *fair.Pool
	// Changes returns a project's changes; nil: no project has any.
	Changes func(p *gateway.Project) Changes
	// Authorizer returns what decides about a project's private channels; nil: only a secret key
	// may use them.
	Authorizer func(p *gateway.Project) Authorizer
	// Archive returns the kept messages of a project; nil: none are kept.
	Archive func(p *gateway.Project) Archive
	// Limits returns the limits of a project; nil: all projects have the default ones.
	Limits func(ctx context.Context, p *gateway.Project) (event.RealtimeLimits, error)
	Log    *slog.Logger
}

// Server serves all projects.
type Server struct {
	Config
	places   *fair.Pool // for sockets
	backlogs *fair.Pool // memory for frames that wait

	knownLimits *cache.Cache[uuid.UUID, *limitsRead]

	mu       sync.Mutex
	tenants  map[uuid.UUID]*tenant // projects with sockets
	closed   bool
	stop     context.CancelFunc // ends streams
	stopping context.Context    // ends with stop
	open     sync.WaitGroup     // sockets, reads of limits
}

// New returns a server without sockets.
func New(c Config) *Server {
	stopping, stop := context.WithCancel(context.Background())
	return &Server{Config: c, stopping: stopping, stop: stop, tenants: map[uuid.UUID]*tenant{},
		places: fair.New(fair.Config{Name: "realtime_sockets", Capacity: maxSockets,
			PerAccount: event.MaxSockets, Reserve: socketReserve}),
		knownLimits: cache.New[uuid.UUID, *limitsRead](cache.Limits{Entries: maxKnownLimits}),
		backlogs: fair.New(fair.Config{Name: "realtime_backlogs", Capacity: maxBacklogs,
			PerAccount: maxBacklogs / 2, PerPart: maxBacklogs / 4, Reserve: maxBacklogs / 4})}
}

// Pools returns the pools that accounts share, for metrics.
func (s *Server) Pools() []*fair.Pool { return []*fair.Pool{s.places, s.backlogs} }

// Interface returns the gateway interface.
func (s *Server) Interface() gateway.Interface {
	open := func(p *gateway.Project, _ gateway.Cache) (gateway.Handler, error) {
		return gateway.Handler{Serve: func(w http.ResponseWriter, r *http.Request, path string) {
			s.serve(w, r, openProject{p, s}, path)
		}}, nil
	}

	return gateway.Interface{Prefix: Prefix, Open: open, Fail: func(w http.ResponseWriter, r *http.Request, err error) {
		if httpx.ApplicationCORS(w, r) {
			return
		}
		if fault.Is(err, fault.NotFound) { // answers like any project to a wrong key
			err = gateway.ErrInvalidKey
		}
		fail(w, r, err)
	}}
}

// serve serves a request. path is the escaped URL path after [Prefix].
func (s *Server) serve(w http.ResponseWriter, r *http.Request, p project, path string) {
	if httpx.ApplicationCORS(w, r) {
		return
	}

	if err := s.dispatch(w, r, p, path); err != nil {
		fail(w, r, err)
	}
}

var errNoRoute = fault.New(fault.NotFound, "There is nothing at this address").WithCode("not_found")

func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, p project, path string) error {
	request := httpx.From(r.Context())
	const route = "/projects/{projectUUID}" + Prefix
	if part := httpx.HostileText(r); part != "" {
		return fault.New(fault.Invalid, "%s must be UTF-8 without null characters", part)
	}

	switch {
	case path == "/websocket" && r.Method == http.MethodGet:
		request.Route = route + path
		return s.serveSocket(w, r, p)
	case path == "/changes" && r.Method == http.MethodGet:
		request.Route = route + path
		return s.serveStream(w, r, p)
	case path == "/api/broadcast" && r.Method == http.MethodPost:
		request.Route = route + path
		return s.serveBatch(w, r, p)
	case strings.HasPrefix(path, "/api/broadcast/") && r.Method == http.MethodPost:
		topic, event, ok := strings.Cut(strings.TrimPrefix(path, "/api/broadcast/"), "/events/")
		if !ok || strings.Contains(topic+event, "/") {
			return errNoRoute
		}

		request.Route = route + "/api/broadcast/{topic}/events/{event}"
		topic, topicErr := url.PathUnescape(topic)
		event, eventErr := url.PathUnescape(event)
		if cmp.Or(topicErr, eventErr) != nil {
			return fault.New(fault.Invalid, "Invalid path")
		}

		return s.serveBroadcast(w, r, p, topic, event)
	}

	return errNoRoute
}

// authenticate returns the caller of a request. A user's token in the Authorization header goes
// first, but clients repeat the key there.
func authenticate(ctx context.Context, r *http.Request, p project) (caller, error) {
	if err := gateway.RefuseAs(r); err != nil {
		return caller{}, err
	}

	c, err := verify(ctx, p, credentialOf(r))
	if err != nil {
		return caller{}, err
	}

	return c, p.inactive()
}

// identify is [authenticate] for requests that may have a platform user's token, whose caller
// expires after [memberSession].
func identify(r *http.Request, p project) (caller, error) {
	c, err := p.identify(r, credentialOf(r))
	if err != nil {
		return caller{}, err
	}

	v, err := callerOf(p, c)
	if err != nil {
		return caller{}, err
	}

	if end := time.Now().Add(memberSession); c.Member != nil && (v.expiresAt.IsZero() || v.expiresAt.After(end)) {
		v.expiresAt = end
	}

	return v, p.inactive()
}

// credentialOf returns the key or token of a request.
func credentialOf(r *http.Request) string {
	key := cmp.Or(r.Header.Get("Apikey"), r.URL.Query().Get("apikey"))
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	text = strings.TrimSpace(text)
	if !strings.EqualFold(scheme, "bearer") || text == "" || strings.HasPrefix(text, foreignKeyPrefix) ||
		(key != "" && !strings.Contains(text, ".")) {
		text = key
	}

	return text
}

// statuses are the statuses of failures.
var statuses = map[fault.Kind]int{
	fault.Invalid: http.StatusBadRequest, fault.Unprocessable: http.StatusUnprocessableEntity,
	fault.Unauthenticated: http.StatusUnauthorized, fault.Forbidden: http.StatusForbidden,
	fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.TooLarge: http.StatusRequestEntityTooLarge, fault.TooSlow: http.StatusRequestTimeout,
	fault.TooMany: http.StatusTooManyRequests, fault.Unavailable: http.StatusServiceUnavailable,
}

// failureText returns what a client may read about a failure.
func failureText(err error) string {
	if e := fault.Of(err); e.Kind != fault.Internal && e.Detail != "" {
		return e.Detail
	}
	return "Internal error"
}

// fail writes an error response.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	e := fault.Of(err)
	status, ok := statuses[e.Kind]
	if !ok {
		status = http.StatusInternalServerError
	}

	request := httpx.From(r.Context())
	request.ErrorCode, request.ErrorText = e.CodeWord(), failureText(err)
	if status >= http.StatusInternalServerError {
		request.Err = err
	}

	body, _ := json.Marshal(map[string]string{"error": failureText(err), "code": e.CodeWord()}) // texts have no error
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only if the client has disconnected
}
