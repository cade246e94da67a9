package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
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
	"socle/internal/tenant"
	"socle/internal/token"
)

const (
	rowsPath  = "/rest/v1"
	believed  = 5 * time.Second // how long what the platform said of a key or project is taken for true
	mostKnown = 10_000          // keys and projects that are kept in mind
	exposed   = "public"        // the schema that the rows API shows
)

// rows serves the rows of every project, at /projects/{projectUUID}/rest/v1.
type rows struct {
	store    *platform.Store
	registry *tenant.Registry
	url      string // public, of the instance; "" if it is not known
	log      *slog.Logger
	nowhere  *rest.Server // answers for projects that are not there as any project answers a stranger

	mu       sync.Mutex
	projects map[uuid.UUID]*projectRows
	known    map[subject]verdict
}

// subject is what the platform is asked about: a project, or a key of one by its hash.
type subject struct {
	project uuid.UUID
	key     [32]byte // zero for the project itself
}

// projectRows serves the rows of a project.
type projectRows struct {
	*rest.Server
	cache *rest.Cache
}

// verdict is what the platform said of a key ("publishable", "secret", "" for none) or of a project (its status).
type verdict struct {
	word  string
	key   uuid.UUID // which, of a key
	until time.Time
}

func newRows(store *platform.Store, registry *tenant.Registry, url string, log *slog.Logger) *rows {
	return &rows{store: store, registry: registry, url: url, log: log, projects: map[uuid.UUID]*projectRows{}, known: map[subject]verdict{},
		nowhere: rest.New(rest.Config{APIKeys: true, Verify: func(context.Context, string) (rest.Caller, error) { return rest.Caller{}, badKey }})}
}

// badKey says that a key or token opens nothing here.
var badKey = &query.Error{Status: http.StatusUnauthorized, Code: "PGRST301", Message: "The key or token is not valid for this project"}

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
	there, err := s.ask(subject{project: id}, func() (verdict, error) {
		status, err := s.store.ProjectStatus(r.Context(), id)
		return verdict{word: status}, err
	})
	if err != nil {
		request.Err = err
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{"code": "PGRST001", "message": "Database connection error", "details": nil, "hint": nil})
		return
	}
	switch there.word {
	case platform.Active:
		request.Project = id
		s.of(id).Serve(w, r, path)
	case platform.Paused:
		request.Project = id
		s.forget(id)
		s.paused(id).Serve(w, r, path)
	default:
		s.forget(id)
		s.nowhere.Serve(w, r, path)
	}
}

// describe returns what a project's root shows to a secret key, of a server that is at a URL.
func (s *rows) describe(ctx context.Context, id uuid.UUID, url string) ([]byte, error) {
	return s.of(id).Description(ctx, "service_role", url+"/projects/"+id.String()+rowsPath)
}

// paused returns what answers for a paused project: to strangers as any project does.
func (s *rows) paused(id uuid.UUID) *rest.Server {
	verify := s.verifier(id)
	return rest.New(rest.Config{APIKeys: true, Verify: func(ctx context.Context, text string) (rest.Caller, error) {
		_, err := verify(ctx, text)
		if _, ok := errors.AsType[*query.Error](err); ok {
			return rest.Caller{}, badKey
		}
		if err != nil {
			return rest.Caller{}, err
		}
		return rest.Caller{}, &query.Error{Status: http.StatusConflict, Code: "project_paused", Message: "The project is paused"}
	}})
}

// of returns what serves a project's rows.
func (s *rows) of(id uuid.UUID) *projectRows {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.projects[id]; p != nil {
		return p
	}
	project := s.registry.Open(id)
	cache := rest.NewCache(project.Trusted, catalog.Options{Schemas: []string{exposed}}, s.log)
	var url string
	if s.url != "" {
		url = s.url + "/projects/" + id.String() + rowsPath
	}
	p := &projectRows{cache: cache, Server: rest.New(rest.Config{
		Catalog: cache, APIKeys: true, Schemas: []string{exposed}, OpenAPIServer: url, OpenAPISecurity: true,
		Role: func(role string) (rest.Role, bool) {
			switch role {
			case "anon", "authenticated":
				return rest.Role{Pool: project.Request(), SearchPath: tenant.RequestPath, Stranger: role == "anon"}, true
			case "service_role":
				return rest.Role{Pool: project.Service(), SearchPath: tenant.RequestPath}, true
			}
			return rest.Role{}, false
		},
		Verify: s.verifier(id),
	})}
	s.projects[id] = p
	return p
}

// verifier returns what finds out who a key or a token of a project is for.
func (s *rows) verifier(id uuid.UUID) func(context.Context, string) (rest.Caller, error) {
	jwt, err := rest.NewJWT(rest.JWTConfig{Secret: []byte(s.registry.JWTSecret(id))})
	if err != nil {
		panic("server: rows: " + err.Error()) // a secret of ours that is none
	}
	return func(ctx context.Context, text string) (rest.Caller, error) {
		if !token.IsAPIKey(text) {
			c, err := jwt.Verify(ctx, text)
			httpx.From(ctx).Token = err == nil
			return c, err
		}
		return s.verifyKey(ctx, id, text)
	}
}

// verifyKey returns what a key opens.
func (s *rows) verifyKey(ctx context.Context, project uuid.UUID, key string) (rest.Caller, error) {
	shown, err := s.ask(subject{project, [32]byte(token.Hash(key))}, func() (verdict, error) {
		known, err := s.store.KnowProjectKey(ctx, project, key)
		return verdict{word: known.Kind, key: known.UUID}, err
	})
	if err != nil {
		return rest.Caller{}, err
	}
	httpx.From(ctx).Key = shown.key
	switch shown.word {
	case "publishable":
		return rest.Caller{Role: "anon"}, nil
	case "secret":
		return rest.Caller{Role: "service_role"}, nil
	}
	return rest.Caller{}, badKey
}

// ask returns what the platform says of something, nothing if it knows nothing of it, and believes it for a while.
func (s *rows) ask(what subject, look func() (verdict, error)) (verdict, error) {
	now := time.Now()
	s.mu.Lock()
	v, ok := s.known[what]
	s.mu.Unlock()
	if ok && now.Before(v.until) {
		return v, nil
	}
	v, err := look()
	if err != nil && !fault.Is(err, fault.NotFound) {
		return verdict{}, err
	}
	v.until = now.Add(believed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= mostKnown {
		clear(s.known) // whoever asks on is asked for again
	}
	s.known[what] = v
	return v, nil
}

// forget ends what was kept for a project that is no more.
func (s *rows) forget(id uuid.UUID) {
	s.mu.Lock()
	p := s.projects[id]
	delete(s.projects, id)
	s.mu.Unlock()
	if p != nil {
		p.cache.Close()
	}
}

// close ends what was kept for all projects.
func (s *rows) close() {
	s.mu.Lock()
	projects := s.projects
	s.projects = map[uuid.UUID]*projectRows{}
	s.mu.Unlock()
	for _, p := range projects {
		p.cache.Close()
	}
}
