package server

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/httpx"
	"socle/internal/platform"
	"socle/internal/rest"
	"socle/internal/rest/catalog"
	"socle/internal/rest/query"
	"socle/internal/schema"
	"socle/internal/tenant"
	"socle/internal/token"
)

const (
	rowsPath  = "/rest/v1"
	believed  = 5 * time.Second // TTL of API keys and project settings
	mostKnown = 10_000          // maximum number of cached keys and settings
	mostKept  = 48 << 20        // maximum bytes of catalogs, statements and descriptions of all projects
	keptEach  = 8 << 10         // estimated bytes of a project beside those
	mostShare = mostKept / 4    // maximum bytes of one project
	trimEvery = 200             // requests between two trims
)

// searched are the schemas of the search path after the exposed one, as in [tenant.RequestPath].
var searched = []string{"public", schema.Extensions}

// rows serves the rows API of every project, at /projects/{projectUUID}/rest/v1.
type rows struct {
	store    *platform.Store
	registry *tenant.Registry
	url      string // public URL of the install; "" if unknown
	log      *slog.Logger
	held     *rest.ResponseBudget // responses of all projects, buffered for their clients
	bodies   *httpx.Budget        // budget of all request bodies, shared with the platform API
	nowhere  *rest.Server         // answers for unknown projects like any project with a wrong key

	mu        sync.Mutex
	projects  map[uuid.UUID]*projectRows
	recent    *list.List // the same projects, most recently used first
	untrimmed int        // requests since the last trim
	known     map[subject]verdict
	changes   uint64 // number of invalidations
}

// subject is a cache key: a project's settings, or one of its API keys by hash.
type subject struct {
	project uuid.UUID
	key     [32]byte // zero for the project's settings
}

// projectRows serves the rows of a project.
type projectRows struct {
	*rest.Server
	id       uuid.UUID
	place    *list.Element
	settings string      // JSON of a platform.RestConfig
	schemas  []string    // exposed schemas, as loaded by cache
	cache    *rest.Cache // nil if the project is not active
}

// verdict is the cached result of a lookup. Its word is the kind of a key ("publishable", "secret")
// or a project's settings, "" for an unknown key or project.
type verdict struct {
	word  string
	key   uuid.UUID // UUID of the API key, zero for a project
	until time.Time
}

func newRows(
	store *platform.Store, registry *tenant.Registry, bodies *httpx.Budget, url string, log *slog.Logger,
) *rows {
	return &rows{store: store, registry: registry, url: url, log: log,
		held: rest.NewResponseBudget(rest.ResponseBudgetSize), bodies: bodies,
		projects: map[uuid.UUID]*projectRows{}, recent: list.New(), known: map[subject]verdict{},
		nowhere: rest.New(rest.Config{APIKeys: true, Verify: func(context.Context, string) (rest.Caller, error) {
			return rest.Caller{}, badKey
		}})}
}

// badKey rejects a key or token that is not valid for the project.
var badKey = &query.Error{
	Status:  http.StatusUnauthorized,
	Code:    "PGRST301",
	Message: "The key or token is not valid for this project",
}

// splitRows returns the project and the rest of the path of a request to the rows API.
func splitRows(path string) (project, rest string, ok bool) {
	after, ok := strings.CutPrefix(path, "/projects/")
	if !ok {
		return "", "", false
	}

	project, rest, ok = strings.Cut(after, rowsPath)
	if !ok || strings.Contains(project, "/") || rest != "" && rest[0] != '/' {
		return "", "", false
	}

	if rest == "" {
		rest = "/"
	}

	return project, rest, true
}

// serve handles a request to the rows API.
func (s *rows) serve(w http.ResponseWriter, r *http.Request, project, path string) {
	request := httpx.From(r.Context())
	request.Route = "/projects/{projectUUID}" + rowsPath

	id, err := uuid.Parse(project)
	if err != nil || len(project) != 36 {
		s.nowhere.Serve(w, r, path)
		return
	}

	there, err := s.ask(request.Start, subject{project: id}, s.settings(r.Context(), id))
	if err != nil {
		request.Err = err
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{
			"code": "PGRST000", "message": "Database connection error.", "details": nil, "hint": nil,
		})

		return
	}

	if there.word == "" {
		s.forget(id)
		s.nowhere.Serve(w, r, path)

		return
	}

	request.Project = id

	p, err := s.of(id, there.word)
	if err != nil {
		request.Err = err
		writeJSON(w, http.StatusInternalServerError, map[string]any{
			"code": "PGRSTX00", "message": "Internal error", "details": nil, "hint": nil,
		})

		return
	}

	p.Serve(w, r, path)
}

// settings returns the lookup of a project's settings.
func (s *rows) settings(ctx context.Context, id uuid.UUID) func() (verdict, error) {
	return func() (verdict, error) {
		settings, err := s.store.RestConfig(ctx, id)
		return verdict{word: settings}, err
	}
}

// describe returns the OpenAPI document of a project's rows, as a secret key sees it at the root.
// url is the server's.
func (s *rows) describe(ctx context.Context, id uuid.UUID, url string) ([]byte, error) {
	// The lookup bypasses the cache: the project may just have been paused.
	there, err := s.learn(subject{project: id}, s.settings(ctx, id))
	if err != nil {
		return nil, err
	}

	p, err := s.of(id, there.word)
	if err != nil {
		return nil, err
	}

	if p.cache == nil {
		return nil, fault.New(fault.Conflict, "the project is paused").WithCode("project_paused")
	}

	return p.Description(ctx, "service_role", url+"/projects/"+id.String()+rowsPath)
}

// closed maps the status of an inactive project to its response.
var closed = map[string]*query.Error{
	platform.Paused:  {Status: http.StatusConflict, Code: "project_paused", Message: "The project is paused"},
	platform.Deleted: {Status: http.StatusNotFound, Code: "project_deleted", Message: "The project is deleted"},
}

// ended returns the response for a project that was paused, deleted or purged since the last
// lookup, nil if it was not.
func (s *rows) ended(ctx context.Context, id uuid.UUID) error {
	there, err := s.learn(subject{project: id}, s.settings(ctx, id))
	if fault.Is(err, fault.NotFound) {
		return badKey
	}

	var how platform.RestConfig
	if err != nil || json.Unmarshal([]byte(there.word), &how) != nil {
		return nil // keep the original error
	}
	if answer := closed[how.Status]; answer != nil {
		return answer
	}

	return nil
}

// unused returns the handler of an inactive project. A caller without valid credentials gets the
// same response as from any other project.
func unused(verify verifier, answer *query.Error) *rest.Server {
	return rest.New(rest.Config{APIKeys: true, Verify: func(ctx context.Context, text string) (rest.Caller, error) {
		_, err := verify(ctx, text)
		if _, ok := errors.AsType[*query.Error](err); ok {
			return rest.Caller{}, badKey
		}
		if err != nil {
			return rest.Caller{}, err
		}

		return rest.Caller{}, answer
	}})
}

// of returns the handler of a project with these settings. It replaces the handler of former
// settings, and reloads the catalog only if the schemas differ.
func (s *rows) of(id uuid.UUID, settings string) (*projectRows, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.untrimmed++; s.untrimmed >= trimEvery {
		s.trim()
	}

	former := s.projects[id]
	if former != nil && former.settings == settings {
		s.recent.MoveToFront(former.place)
		return former, nil
	}

	var how platform.RestConfig
	if err := json.Unmarshal([]byte(settings), &how); err != nil {
		return nil, fmt.Errorf("read the settings of the rows API: %w", err)
	}

	verify, err := s.verifier(id, how.Keys)
	if err != nil {
		return nil, err
	}

	p := &projectRows{id: id, settings: settings, schemas: how.Schemas}
	switch {
	case closed[how.Status] != nil:
		p.Server = unused(verify, closed[how.Status])
	case former != nil && former.cache != nil && slices.Equal(former.schemas, how.Schemas):
		p.cache = former.cache
	default:
		p.cache = s.newCache(id, how.Schemas)
	}

	if p.Server == nil {
		p.Server = s.active(id, p, verify)
	}

	if former != nil {
		s.recent.Remove(former.place) // requests in flight still use it
	}

	s.projects[id], p.place = p, s.recent.PushFront(p)
	return p, nil
}

// trim evicts the least recently used projects beyond the memory limit. Requests in flight keep
// their handler; the next request reloads the project.
func (s *rows) trim() {
	s.untrimmed = 0
	size := 0
	for e := s.recent.Front(); e != nil; {
		p := e.Value.(*projectRows)
		e = e.Next()

		own := keptEach + p.Size()
		if own > mostShare || size+own > mostKept {
			s.drop(p)
			continue
		}

		size += own
	}
}

func (s *rows) drop(p *projectRows) {
	delete(s.projects, p.id)
	s.recent.Remove(p.place)
}

// newCache returns the catalog cache of a project's exposed schemas.
func (s *rows) newCache(id uuid.UUID, schemas []string) *rest.Cache {
	return rest.NewCache(rest.Source{
		Pool:      s.registry.Open(id).Trusted,
		Options:   catalog.Options{Schemas: schemas, SearchPath: searched},
		Version:   tenant.CatalogueVersion,
		AfterRead: tenant.FoldCatalogueVersion,
	}, s.log)
}

// active returns the handler of an active project.
func (s *rows) active(id uuid.UUID, p *projectRows, verify verifier) *rest.Server {
	project := s.registry.Open(id)
	var url string
	if s.url != "" {
		url = s.url + "/projects/" + id.String() + rowsPath
	}

	return rest.New(rest.Config{
		Catalog: p.cache, APIKeys: true, Schemas: p.schemas, SearchPath: searched,
		OpenAPIServer: url, OpenAPISecurity: true,
		Role: func(role string) (rest.Role, bool) {
			switch role {
			case "anon", "authenticated":
				return rest.Role{
					Pool:       project.Request(),
					SearchPath: tenant.RequestPath,
					Anonymous:  role == "anon",
				}, true
			case "service_role":
				return rest.Role{Pool: project.Service(), SearchPath: tenant.RequestPath}, true
			}

			return rest.Role{}, false
		},
		Verify: verify, ResponseBudget: s.held, BodyBudget: s.bodies, BudgetOwner: id.String(),
		PoolContended: s.registry.Awaited, Unavailable: func(ctx context.Context) error { return s.ended(ctx, id) },
		OverQuota: project.Full, FarOverQuota: project.Overgrown, SharedOrigin: true,
	})
}

// verifier authenticates an API key or a token.
type verifier = func(context.Context, string) (rest.Caller, error)

// verifier returns the verifier of a project. It accepts the project's API keys, and tokens signed
// with its secret or one of its public keys.
func (s *rows) verifier(id uuid.UUID, public []json.RawMessage) (verifier, error) {
	config := rest.JWTConfig{Secret: []byte(s.registry.JWTSecret(id))}
	if len(public) > 0 {
		keys, err := json.Marshal(map[string]any{"keys": public})
		if err != nil {
			return nil, err
		}

		config.Keys = keys
	}

	jwt, err := rest.NewJWT(config)
	if err != nil {
		return nil, fmt.Errorf("the keys of the project's tokens: %w", err)
	}

	return func(ctx context.Context, text string) (rest.Caller, error) {
		if !strings.Contains(text, ".") { // an API key, well-formed or not
			return s.verifyKey(ctx, id, text)
		}

		c, err := jwt.Verify(ctx, text)
		httpx.From(ctx).Token = err == nil

		return c, err
	}, nil
}

// verifyKey returns the caller of an API key. It rejects a malformed key without a lookup in the
// database.
func (s *rows) verifyKey(ctx context.Context, project uuid.UUID, key string) (rest.Caller, error) {
	request := httpx.From(ctx)
	shown, err := s.ask(request.Start, subject{project, token.Sum(key)}, func() (verdict, error) {
		if !token.IsAPIKey(key) {
			return verdict{}, badKey
		}

		known, err := s.store.KnowProjectKey(ctx, project, key)
		return verdict{word: known.Kind, key: known.UUID}, err
	})
	if err != nil {
		return rest.Caller{}, err
	}

	request.Key = shown.key

	switch shown.word {
	case "publishable":
		return rest.Caller{Role: "anon"}, nil
	case "secret":
		return rest.Caller{Role: "service_role"}, nil
	}

	return rest.Caller{}, badKey
}

// ask returns the cached verdict on a subject, or looks it up. An unknown subject has an empty
// verdict.
func (s *rows) ask(now time.Time, what subject, look func() (verdict, error)) (verdict, error) {
	s.mu.Lock()
	v, ok := s.known[what]
	s.mu.Unlock()

	if ok && now.Before(v.until) {
		return v, nil
	}

	v, err := s.learn(what, look)
	if fault.Is(err, fault.NotFound) {
		return v, nil
	}

	return v, err
}

// learn looks up a subject and refreshes its cache entry. It fails with NotFound for an unknown
// subject, and caches that too.
func (s *rows) learn(what subject, look func() (verdict, error)) (verdict, error) {
	now := time.Now()
	s.mu.Lock()
	changes := s.changes
	s.mu.Unlock()

	v, err := look()
	if err != nil && !fault.Is(err, fault.NotFound) {
		return verdict{}, err
	}

	v.until = now.Add(believed)

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.changes != changes {
		return v, err // possibly stale: do not cache
	}

	for other := range s.known { // evict at random; entries in use are looked up again
		if len(s.known) < mostKnown {
			break
		}
		delete(s.known, other)
	}

	s.known[what] = v
	return v, err
}

// changed invalidates the settings of a project, which this server has paused, resumed, deleted or
// restored.
func (s *rows) changed(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.changes++
	delete(s.known, subject{project: id})
}

// replaced invalidates the cached catalog of a project, because its database is being swapped.
func (s *rows) replaced(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if p := s.projects[id]; p != nil && p.cache != nil {
		p.cache.Forget()
	}
}

// forget drops the handler of a purged project.
func (s *rows) forget(id uuid.UUID) {
	s.mu.Lock()
	p := s.projects[id]
	if p != nil {
		s.drop(p)
	}

	s.mu.Unlock()

	if p != nil && p.cache != nil {
		p.cache.Close()
	}
}

// close drops the handlers of all projects.
func (s *rows) close() {
	s.mu.Lock()
	projects := s.projects
	s.projects = map[uuid.UUID]*projectRows{}
	s.recent.Init()
	s.mu.Unlock()

	for _, p := range projects {
		if p.cache != nil {
			p.cache.Close()
		}
	}
}
