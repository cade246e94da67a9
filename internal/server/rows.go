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
	believed  = 5 * time.Second // how long what the platform said of a key or project is taken for true
	mostKnown = 10_000          // keys and projects that are kept in mind
	mostKept  = 48 << 20        // bytes of catalogues, statements and descriptions of all projects together
	keptEach  = 8 << 10         // bytes of a project beside those
	mostShare = mostKept / 4    // bytes of one project
	trimEvery = 200             // requests
)

// searched are the schemas that are searched behind the one that is shown, as [tenant.RequestPath] has them.
var searched = []string{"public", schema.Extensions}

// rows serves the rows of every project, at /projects/{projectUUID}/rest/v1.
type rows struct {
	store    *platform.Store
	registry *tenant.Registry
	url      string // public, of the instance; "" if it is not known
	log      *slog.Logger
	held     *rest.ResponseBudget // the answers of all projects that wait for their clients
	bodies   *httpx.Budget        // of all requests, those of the platform API too
	nowhere  *rest.Server         // answers for projects that are not there as any project answers a stranger

	mu        sync.Mutex
	projects  map[uuid.UUID]*projectRows
	recent    *list.List // of the same, the one used last first
	untrimmed int        // requests since trim
	known     map[subject]verdict
	changes   uint64 // of projects, that were told
}

// subject is what the platform is asked about: a project, or a key of one by its hash.
type subject struct {
	project uuid.UUID
	key     [32]byte // zero for the project itself
}

// projectRows serves the rows of a project.
type projectRows struct {
	*rest.Server
	id       uuid.UUID
	place    *list.Element
	settings string      // as the platform said them
	schemas  []string    // that cache knows
	cache    *rest.Cache // nil of a project that is not active
}

// verdict is what the platform said of a key ("publishable", "secret", "" for none) or of a project (how its rows are
// served, "" if they are not).
type verdict struct {
	word  string
	key   uuid.UUID // which, of a key
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

// badKey says that a key or token opens nothing here.
var badKey = &query.Error{
	Status:  http.StatusUnauthorized,
	Code:    "PGRST301",
	Message: "The key or token is not valid for this project",
}

// splitRows returns the project and the rest of the path of a request for rows.
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

// serve answers a request for rows.
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

// settings returns what asks the platform how a project's rows are served.
func (s *rows) settings(ctx context.Context, id uuid.UUID) func() (verdict, error) {
	return func() (verdict, error) {
		settings, err := s.store.RestConfig(ctx, id)
		return verdict{word: settings}, err
	}
}

// describe returns what a project's root shows to a secret key, of a server that is at a URL.
func (s *rows) describe(ctx context.Context, id uuid.UUID, url string) ([]byte, error) {
	there, err := s.learn(subject{project: id}, s.settings(ctx, id)) // the project may have been paused a moment ago
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

// closed are the answers for a project that is not active, by its status.
var closed = map[string]*query.Error{
	platform.Paused:  {Status: http.StatusConflict, Code: "project_paused", Message: "The project is paused"},
	platform.Deleted: {Status: http.StatusNotFound, Code: "project_deleted", Message: "The project is deleted"},
}

// ended returns what is to be answered for a project that the platform has taken out of use since it was asked last, nil if it has not.
func (s *rows) ended(ctx context.Context, id uuid.UUID) error {
	there, err := s.learn(subject{project: id}, s.settings(ctx, id))
	if fault.Is(err, fault.NotFound) {
		return badKey
	}

	var how platform.RestConfig
	if err != nil || json.Unmarshal([]byte(there.word), &how) != nil {
		return nil // the failure stands as it is
	}
	if answer := closed[how.Status]; answer != nil {
		return answer
	}

	return nil
}

// unused returns what gives an answer for a project that is not active: to strangers as any project does.
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

// of returns what serves a project's rows by its settings. What served them by others ends; the catalogue is read anew only for other schemas.
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
		s.recent.Remove(former.place) // requests under way still have it
	}

	s.projects[id], p.place = p, s.recent.PushFront(p)
	return p, nil
}

// trim drops what is kept for the projects that were unused for longest, beyond a bound. Requests under way still have it; who asks
// again has it read again.
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

// newCache returns a cache of what a project exposes.
func (s *rows) newCache(id uuid.UUID, schemas []string) *rest.Cache {
	return rest.NewCache(rest.Source{
		Pool:      s.registry.Open(id).Trusted,
		Options:   catalog.Options{Schemas: schemas, SearchPath: searched},
		Version:   tenant.CatalogueVersion,
		AfterRead: tenant.FoldCatalogueVersion,
	}, s.log)
}

// active returns what serves the rows of a project that is not paused.
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

// verifier finds out who a key or a token is for.
type verifier = func(context.Context, string) (rest.Caller, error)

// verifier returns that of a project, which takes tokens of its secret and of its own public keys.
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
		if !strings.Contains(text, ".") { // meant as a key, however it looks
			return s.verifyKey(ctx, id, text)
		}

		c, err := jwt.Verify(ctx, text)
		httpx.From(ctx).Token = err == nil

		return c, err
	}, nil
}

// verifyKey returns what a key opens. What has not the form of one opens nothing, without asking anyone.
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

// ask returns what the platform says of something, nothing if it knows nothing of it, and believes it for a while.
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

// learn is ask for what the platform says now: it fails with NotFound if that is nothing.
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
		return v, err // it may be what was true before
	}

	for other := range s.known { // any one: whoever asks on is asked for again
		if len(s.known) < mostKnown {
			break
		}
		delete(s.known, other)
	}

	s.known[what] = v
	return v, err
}

// changed has the platform asked anew about a project that this server has paused, resumed, deleted or restored.
func (s *rows) changed(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.changes++
	delete(s.known, subject{project: id})
}

// replaced has what is known of a project's database read anew, which becomes another one.
func (s *rows) replaced(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if p := s.projects[id]; p != nil && p.cache != nil {
		p.cache.Forget()
	}
}

// forget ends what was kept for a project that is no more.
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

// close ends what was kept for all projects.
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
