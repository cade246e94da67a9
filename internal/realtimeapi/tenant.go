package realtimeapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/tick"
)

// project is a project under its current settings: one that the gateway has opened, or a test's.
type project interface {
	id() uuid.UUID
	share(ctx context.Context) fair.Key
	verify(ctx context.Context, text string) (gateway.Caller, error)
	// identify is verify for a request that may have a platform user's token.
	identify(r *http.Request, text string) (gateway.Caller, error)
	timeout(role string) time.Duration
	inactive() error
	// current returns the project under its current settings. It fails with NotFound if it was
	// purged.
	current(ctx context.Context) (project, error)
	changes() Changes       // nil: none
	authorizer() Authorizer // nil: private channels are for secret keys only
	archive() Archive       // nil: no messages are kept
	limits(ctx context.Context) (event.RealtimeLimits, error)
}

// openProject is a project that the gateway has opened.
type openProject struct {
	*gateway.Project
	server *Server
}

func (p openProject) id() uuid.UUID { return p.UUID }

func (p openProject) share(ctx context.Context) fair.Key { return p.Database.Key(ctx) }

func (p openProject) verify(ctx context.Context, text string) (gateway.Caller, error) {
	return p.Verify(ctx, text)
}

func (p openProject) identify(r *http.Request, text string) (gateway.Caller, error) {
	return p.Identify(r, text)
}

// timeout returns a role's statement timeout; 0 means none.
func (p openProject) timeout(role string) time.Duration { return p.StatementTimeout(role) }

func (p openProject) inactive() error {
	if p.Inactive != nil {
		return p.Inactive
	}
	return nil
}

func (p openProject) current(ctx context.Context) (project, error) {
	now, err := p.Current(ctx)
	if err != nil {
		return nil, err
	}

	return openProject{now, p.server}, nil
}

func (p openProject) changes() Changes {
	if p.server.Changes == nil {
		return nil
	}
	return p.server.Changes(p.Project)
}

func (p openProject) authorizer() Authorizer {
	if p.server.Authorizer == nil {
		return nil
	}
	return p.server.Authorizer(p.Project)
}

func (p openProject) archive() Archive {
	if p.server.Archive == nil {
		return nil
	}
	return p.server.Archive(p.Project)
}

func (p openProject) limits(ctx context.Context) (event.RealtimeLimits, error) {
	if p.server.Limits == nil {
		return event.DefaultLimits, nil
	}
	return p.server.Limits(ctx, p.Project)
}

// caller is a verified key or token.
type caller struct {
	actor.Actor
	expiresAt time.Time // zero: never
}

// foreignKeyPrefix begins the keys of Supabase's projects, which clients may be set to.
const foreignKeyPrefix = "sb_"

// verify returns the caller behind a key or a token. It fails with Unauthenticated or Forbidden.
func verify(ctx context.Context, p project, text string) (caller, error) {
	c, err := p.verify(ctx, text)
	if err != nil {
		return caller{}, err
	}

	return callerOf(p, c)
}

// callerOf returns the caller of a verified credential. It fails with Forbidden for a role that has
// no channels, and with Unauthenticated for an expired token.
func callerOf(p project, c gateway.Caller) (caller, error) {
	switch c.Role {
	case "anon", "authenticated", actor.ServiceRole:
	case "":
		c.Role = "anon"
	default:
		return caller{}, fault.New(fault.Forbidden, "The role of the token is none of the channels").
			WithCode("invalid_role")
	}

	var claims struct {
		Expires *float64 `json:"exp"`
	}
	_ = json.Unmarshal(c.Claims, &claims) // a key has none

	v := caller{Actor: actor.Actor{Role: c.Role, Claims: c.Claims, Subject: c.Subject, Timeout: p.timeout(c.Role)}}
	if claims.Expires != nil {
		v.expiresAt = time.UnixMilli(int64(*claims.Expires * 1000))
		if late := time.Since(v.expiresAt); late >= 0 {
			return caller{}, errExpired(late)
		}
	}

	return v, nil
}

func errExpired(late time.Duration) error {
	return fault.New(fault.Unauthenticated, "Token has expired %d seconds ago", int(late.Seconds())).
		WithCode("token_expired")
}

// tokenText returns what a client may read about a token that was refused.
func tokenText(err error) string {
	text := failureText(err)
	if text == "JWT expired" { // so long ago that the verifier sees it as well
		return "Token has expired"
	}

	return text
}

// tenant is a project with sockets. It checks that the project, keys and tokens are still valid.
type tenant struct {
	server *Server
	id     uuid.UUID
	share  fair.Key
	limits atomic.Pointer[event.RealtimeLimits]

	mu      sync.Mutex
	project project
	sockets map[*socket]struct{}
	stop    context.CancelFunc // ends the checks
}

var errStopping = fault.New(fault.Unavailable, "The server is stopping").WithCode("stopping")

// enter adds a socket to its project.
func (s *Server) enter(k *socket, p project, limits event.RealtimeLimits) (*tenant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.closed {
		return nil, errStopping
	}

	t := s.tenants[p.id()]
	if t == nil {
		ctx, stop := context.WithCancel(context.Background())
		t = &tenant{server: s, id: p.id(), share: k.share, project: p, sockets: map[*socket]struct{}{}, stop: stop}
		s.tenants[t.id] = t
		go t.watch(ctx)
	}

	s.open.Add(1)
	t.limits.Store(&limits)
	t.mu.Lock()
	t.sockets[k] = struct{}{}
	t.mu.Unlock()

	return t, nil
}

// exit removes a socket from its project.
func (s *Server) exit(k *socket, t *tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()

	t.mu.Lock()
	delete(t.sockets, k)
	isLast := len(t.sockets) == 0
	t.mu.Unlock()

	if isLast {
		t.stop()
		delete(s.tenants, t.id)
	}
	s.open.Done()
}

// Close ends all sockets and refuses new ones. It returns when their handlers have ended.
func (s *Server) Close() {
	s.stop()
	s.mu.Lock()
	s.closed = true
	var sockets []*socket
	for _, t := range s.tenants {
		sockets = append(sockets, t.list()...)
	}
	s.mu.Unlock()

	for _, k := range sockets {
		k.close(statusGoingAway, "the server is stopping")
	}

	cut := time.AfterFunc(stopTimeout, func() {
		for _, k := range sockets {
			k.cut()
		}
	})
	defer cut.Stop()

	s.open.Wait()
}

// Sockets returns the number of sockets.
func (s *Server) Sockets() int { return int(s.places.Stats().InUse) }

func (t *tenant) list() []*socket {
	t.mu.Lock()
	defer t.mu.Unlock()

	sockets := make([]*socket, 0, len(t.sockets))
	for k := range t.sockets {
		sockets = append(sockets, k)
	}

	return sockets
}

// now returns the project under its latest known settings.
func (t *tenant) now() project {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.project
}

// watch checks the project until ctx ends.
func (t *tenant) watch(ctx context.Context) {
	for range tick.Every(ctx, checkInterval) {
		t.check(ctx)
	}
}

// check closes the sockets of a project that is no longer active, those whose key is no longer
// valid, and, under new settings, the channels whose token is none.
func (t *tenant) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(httpx.WithShare(ctx, t.share), checkTimeout)
	defer cancel()

	former := t.now()
	current, err := former.current(ctx)
	switch {
	case fault.Is(err, fault.NotFound):
		t.closeAll(gateway.ErrUnknownProject)
		return
	case err != nil: // the platform database is out of reach
		t.server.Log.Warn("could not check the sockets of a project", "project", t.id, "error", err)
		return
	case current.inactive() != nil:
		t.closeAll(current.inactive())
		return
	}

	t.mu.Lock()
	t.project = current
	t.mu.Unlock()
	limits := t.server.limits(ctx, current)
	t.limits.Store(&limits)

	failures := map[string]error{}
	for _, k := range t.list() {
		err, isKnown := failures[k.key]
		if !isKnown {
			_, err = verify(ctx, current, k.key)
			failures[k.key] = err
		}

		if fault.Is(err, fault.Unauthenticated) {
			k.close(statusPolicyViolation, "the key is no longer valid")
		} else if current != former {
			k.recheck(ctx, current)
		}
	}
}

// closeAll closes the sockets of a project that is not active.
func (t *tenant) closeAll(failure error) {
	for _, k := range t.list() {
		k.close(statusPolicyViolation, strings.ToLower(failureText(failure)))
	}
}
