package server

import (
	"container/list"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/cache"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/session"
)

const (
	rowsPath        = "/rest/v1"
	maxProjectsSize = 48 << 20            // bytes of catalogs, statements and descriptions of all projects
	projectOverhead = 8 << 10             // estimated bytes of a project beside those
	maxProjectSize  = maxProjectsSize / 4 // bytes of one project
	trimInterval    = 200                 // requests between two trims
)

// rows serves the rows API of every project, at /projects/{projectUUID}/rest/v1.
type rows struct {
	store          *platform.Store
	registry       *projectdb.Registry
	endUsers       *enduser.Service
	url            string // public URL of the install; "" if unknown
	log            *slog.Logger
	responses      *session.Budget // shared by the buffered responses of all projects
	bodies         *fair.Pool      // shared with the platform API
	blobs          *blob.Store
	variants       *object.Variants
	signKey        []byte                                       // of signed URLs of applications' files
	discard        func(ctx context.Context, project uuid.UUID) // removes bytes of deleted files
	unknownProject *rest.Server                                 // answers like any project with a wrong key

	lookups           singleflight.Group // in the platform database
	mu                sync.Mutex
	projects          map[uuid.UUID]*projectRows
	recent            *list.List // the same projects, most recently used first
	requestsSinceTrim int
	cache             *cache.Cache[cacheKey, cacheEntry]
	invalidations     uint64
}

func newRows(
	store *platform.Store, registry *projectdb.Registry, endUsers *enduser.Service, bodies *fair.Pool, url string,
	log *slog.Logger,
) *rows {
	refuse := func(context.Context, string) (rest.Caller, error) { return rest.Caller{}, errBadKey }
	return &rows{store: store, registry: registry, endUsers: endUsers, url: url, log: log,
		responses: session.NewBudget(session.BudgetSize), bodies: bodies,
		projects: map[uuid.UUID]*projectRows{}, recent: list.New(),
		cache:          cache.New[cacheKey, cacheEntry](cache.Limits{Entries: maxCacheEntries}),
		unknownProject: rest.New(rest.Config{Auth: rest.Auth{APIKeys: true, Verify: refuse}})}
}

// errBadKey rejects a key or token that is not valid for the project.
var errBadKey = fault.New(fault.Unauthenticated, "The key or token is not valid for this project").
	WithCode("invalid_key")

// errPlatformToken rejects the token of a member. Rows are for applications, with their own keys.
var errPlatformToken = &fault.Error{
	Kind:   fault.Unauthenticated,
	Code:   "platform_token",
	Detail: "This is a token for the platform API. The rows API takes a key of the project, or a token of its users",
	Extra:  map[string]any{"hint": "Create a key: socle keys create, or POST /projects/{projectUUID}/keys"},
}

// serve handles a request to the rows API.
func (s *rows) serve(w http.ResponseWriter, r *http.Request, project, path string) {
	request := httpx.From(r.Context())
	request.Route = "/projects/{projectUUID}" + rowsPath

	id, err := uuid.Parse(project)
	if err != nil || len(project) != 36 {
		s.unknownProject.Serve(w, r, path)
		return
	}

	entry, err := s.findSettings(r.Context(), id)
	if err != nil {
		request.Err = err
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{
			"code": "PGRST000", "message": "Database connection error.", "details": nil, "hint": nil,
		})

		return
	}

	if entry.value == "" {
		s.remove(id)
		s.unknownProject.Serve(w, r, path)

		return
	}

	request.Project = id

	p, err := s.handler(id, entry.value)
	if err != nil {
		request.Err = err
		writeJSON(w, http.StatusInternalServerError, map[string]any{
			"code": "PGRSTX00", "message": "Internal error", "details": nil, "hint": nil,
		})

		return
	}

	p.Serve(w, r, path)
}

// splitProject returns the project and the rest of the path of a request to an interface of a
// project, such as rowsPath.
func splitProject(path, root string) (project, rest string, ok bool) {
	after, ok := strings.CutPrefix(path, "/projects/")
	if !ok {
		return "", "", false
	}

	project, rest, ok = strings.Cut(after, root)
	if !ok || strings.Contains(project, "/") || (rest != "" && rest[0] != '/') {
		return "", "", false
	}

	if rest == "" {
		rest = "/"
	}

	return project, rest, true
}

// describe returns the OpenAPI document of a project's rows, as a secret key sees it at the root.
// url is the server's.
func (s *rows) describe(ctx context.Context, id uuid.UUID, url string) ([]byte, error) {
	// The lookup bypasses the cache: the project may just have been paused.
	entry, err := s.refresh(ctx, cacheKey{project: id}, s.settingsLoader(id))
	if err != nil {
		return nil, err
	}

	p, err := s.handler(id, entry.value)
	if err != nil {
		return nil, err
	}

	if p.catalog == nil {
		return nil, fault.New(fault.Conflict, "the project is paused").WithCode("project_paused")
	}

	return p.Description(ctx, "service_role", url+"/projects/"+id.String()+rowsPath)
}

// invalidateCatalog invalidates the cached catalog of a project, because its database is being
// swapped.
func (s *rows) invalidateCatalog(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if p := s.projects[id]; p != nil && p.catalog != nil {
		p.catalog.Forget()
	}
}

// remove drops the handler of a purged project.
func (s *rows) remove(id uuid.UUID) {
	s.mu.Lock()
	p := s.projects[id]
	if p != nil {
		s.drop(p)
	}

	s.mu.Unlock()

	if p != nil && p.catalog != nil {
		p.catalog.Close()
	}
}

// cacheSizes returns the number of projects with a handler, and of cached keys and settings.
func (s *rows) cacheSizes() (projects, keys int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.projects), s.cache.Len()
}

// close drops the handlers of all projects.
func (s *rows) close() {
	s.mu.Lock()
	projects := s.projects
	s.projects = map[uuid.UUID]*projectRows{}
	s.recent.Init()
	s.mu.Unlock()

	for _, p := range projects {
		if p.catalog != nil {
			p.catalog.Close()
		}
	}
}
