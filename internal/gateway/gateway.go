// Package gateway is the door through which applications call a project. It finds the project of a
// request, opens it under its settings, verifies keys and tokens, and passes the request to the
// interface in its path: rows, end users, files.
//
//	/projects/{projectUUID}/rest/v1/titles?id=eq.7
//	          |             |       |
//	          Project       |       path of the Handler
//	                        Interface
//
// Each interface is a contract of its own, in a package above this one, and words failures itself.
// Package server registers them. Rows of keys belong to package appkey, the database of a project
// to package projectdb.
package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/cache"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	maxProjectsSize = 48 << 20            // bytes that all projects cache, such as catalogs
	maxProjectSize  = maxProjectsSize / 4 // bytes per project
	projectOverhead = 8 << 10             // estimated bytes per project beside its caches
	maxClaimsSize   = 16 << 20            // bytes that claims of end users cache
	weighInterval   = 200                 // requests between two measurements
)

// Interface is a contract by which applications call projects.
type Interface struct {
	Prefix string // path behind the project's, such as /rest/v1
	// Open returns a project's handler. former is the cache of the handler under former settings,
	// or nil; requests in flight still use it.
	Open func(p *Project, former Cache) (Handler, error)
	// Fail answers a request whose project is unknown, see [ErrUnknownProject], or can't be opened.
	Fail func(w http.ResponseWriter, r *http.Request, err error)
}

// Handler serves a project by one contract.
type Handler struct {
	// Serve serves a request. path is the escaped path behind the prefix and begins with a slash.
	Serve func(w http.ResponseWriter, r *http.Request, path string)
	Cache Cache // nil: none
}

// Cache is a handler's cache for its project's database.
type Cache interface {
	Size() int // bytes
	Forget()   // drops everything, because the database is being swapped
	Close()    // ends background work, because the project is purged or the server stops
}

// ErrUnknownProject is the failure for a request to a project that does not exist.
var ErrUnknownProject = fault.New(fault.NotFound, "Project not found").WithCode("project_not_found")

// inactive maps an inactive project's status to its requests' failure.
var inactive = map[string]*fault.Error{
	platform.Paused:  fault.New(fault.Conflict, "The project is paused").WithCode("project_paused"),
	platform.Deleted: fault.New(fault.NotFound, "The project is deleted").WithCode("project_deleted"),
}

// Config has a [Gateway]'s dependencies.
type Config struct {
	Platform   *platform.DB
	Projects   *projectdb.Registry
	PublicURL  string // the install's address without trailing slash; "" if unknown
	Interfaces []Interface
	// SigningKeys returns the public keys for end-user tokens in a project, as JSON Web Keys.
	SigningKeys func(project uuid.UUID, generation int) ([]json.RawMessage, error)
	Accounts    *account.Service // verifies tokens of platform users
	// EndUserClaims returns the claims of an end user's tokens, a JSON object. It fails with
	// NotFound for an unknown end user.
	EndUserClaims func(ctx context.Context, project, user uuid.UUID) ([]byte, error)
}

// Gateway serves all projects' interfaces. It is safe for concurrent use.
type Gateway struct {
	Config
	routes []string // by interface index

	settings *lookups[uuid.UUID, string] // Settings as JSON
	keys     *lookups[keyHash, appkey.Identity]
	s3Keys   *lookups[s3KeyID, struct{}]
	members  *lookups[credentialInProject, account.Caller]
	endUsers *lookups[endUserID, []byte] // claims

	openProjects *cache.Cache[uuid.UUID, *Project]
	opening      sync.Mutex    // held to open a project
	requests     atomic.Uint64 // since the start
}

// New returns a gateway.
func New(c Config) *Gateway {
	c.Interfaces = slices.SortedFunc(slices.Values(c.Interfaces), func(a, b Interface) int {
		return cmp.Compare(len(b.Prefix), len(a.Prefix)) // the longest match first
	})

	var routes []string
	for _, i := range c.Interfaces {
		routes = append(routes, "/projects/{projectUUID}"+i.Prefix)
	}

	return &Gateway{
		Config: c, routes: routes,
		settings: newLookups(func(ctx context.Context, project uuid.UUID) (string, error) {
			return readSettings(ctx, c.Platform, project)
		}),
		keys: newLookups(func(ctx context.Context, k keyHash) (appkey.Identity, error) {
			return appkey.FindProjectKey(ctx, c.Platform, k.project, k.hash[:])
		}),
		s3Keys: newLookups(func(ctx context.Context, k s3KeyID) (struct{}, error) {
			return struct{}{}, appkey.FindS3Key(ctx, c.Platform, k.project, k.key)
		}),
		members: newMemberLookups(c.Accounts),
		endUsers: newWeightedLookups(func(ctx context.Context, k endUserID) ([]byte, error) {
			return c.EndUserClaims(ctx, k.project, k.user)
		}, maxClaimsSize, func(claims []byte) int64 { return int64(len(claims)) }),
		openProjects: cache.New[uuid.UUID, *Project](
			cache.Limits{Weight: maxProjectsSize, EntryWeight: maxProjectSize}),
	}
}

// Serve serves a request to an interface of a project. It reports false for any other request,
// which it leaves alone. path is the request's escaped path.
func (g *Gateway) Serve(w http.ResponseWriter, r *http.Request, path string) bool {
	index, project, rest, ok := g.matchPath(path)
	if !ok {
		return false
	}

	request := httpx.From(r.Context())
	request.Route, request.Interface = g.routes[index], g.Interfaces[index].Prefix

	p, err := g.findProject(r.Context(), project)
	if err != nil {
		g.Interfaces[index].Fail(w, r, err)
		return true
	}

	p.handlers[index].Serve(w, r, rest)
	return true
}

// matchPath returns the index of the interface that a path belongs to, with the project and the
// remaining path.
func (g *Gateway) matchPath(path string) (index int, project, rest string, ok bool) {
	path, ok = strings.CutPrefix(path, "/projects/")
	if !ok {
		return 0, "", "", false
	}

	end := strings.IndexByte(path, '/')
	if end < 0 {
		return 0, "", "", false
	}

	for i := range g.Interfaces {
		rest, ok := strings.CutPrefix(path[end:], g.Interfaces[i].Prefix)
		switch {
		case !ok:
		case rest == "":
			return i, path[:end], "/", true
		case rest[0] == '/':
			return i, path[:end], rest, true
		}
	}

	return 0, "", "", false
}

// findProject returns a request's project. It fails with ErrUnknownProject if there is none. From
// here on the request counts to the project's account, unless that is not known yet.
func (g *Gateway) findProject(ctx context.Context, text string) (*Project, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return nil, ErrUnknownProject
	}

	request := httpx.From(ctx)
	if key, ok := g.Projects.KnownKey(id); ok {
		request.Share = httpx.In(ctx, key)
	}

	settings, err := g.settings.find(ctx, request.Start, id)
	if fault.Is(err, fault.NotFound) {
		g.closeProject(id)
		return nil, ErrUnknownProject
	}
	if err != nil {
		return nil, err
	}

	request.Project = id

	if g.requests.Add(1)%weighInterval == 0 {
		g.openProjects.Weigh((*Project).size)
	}

	return g.ensureOpen(id, settings)
}

// ensureOpen returns a project with these settings. It opens one that is not open, or whose
// settings have changed.
func (g *Gateway) ensureOpen(id uuid.UUID, settings string) (*Project, error) {
	if p, ok := g.openProjects.Get(id); ok && p.text == settings {
		return p, nil
	}

	g.opening.Lock()
	defer g.opening.Unlock()

	former, ok := g.openProjects.Get(id)
	if ok && former.text == settings {
		return former, nil
	}

	p, err := g.openProject(id, settings, former)
	if err != nil {
		return nil, err
	}

	g.openProjects.PutWeighted(id, p, projectOverhead) // its caches are empty, or weighed with all others soon
	return p, nil
}

// Refresh returns a project as it is now, for a caller outside application requests. It fails with
// NotFound unless the project is active, paused or deleted.
func (g *Gateway) Refresh(ctx context.Context, id uuid.UUID) (*Project, error) {
	settings, err := g.settings.refresh(ctx, id)
	if err != nil {
		return nil, err
	}

	return g.ensureOpen(id, settings)
}

// Invalidate drops a project's cached settings, which this server has paused, resumed, deleted or
// restored.
func (g *Gateway) Invalidate(id uuid.UUID) { g.settings.invalidate(id) }

// Forget drops everything that handlers keep of a project's database, because it is being swapped.
func (g *Gateway) Forget(id uuid.UUID) {
	if p, ok := g.openProjects.Get(id); ok {
		for _, h := range p.handlers {
			if h.Cache != nil {
				h.Cache.Forget()
			}
		}
	}
}

// closeProject closes a purged project.
func (g *Gateway) closeProject(id uuid.UUID) {
	if p, ok := g.openProjects.Get(id); ok {
		g.openProjects.Delete(id)
		p.close()
	}
}

// Close closes all projects.
func (g *Gateway) Close() {
	for _, p := range g.openProjects.Clear() {
		p.close()
	}
}

// Stats counts cached values.
type Stats struct {
	Projects int // open ones
	Lookups  int // keys, settings, members and claims of end users
}

// Stats returns the cache sizes.
func (g *Gateway) Stats() Stats {
	return Stats{Projects: g.openProjects.Len(), Lookups: g.settings.len() + g.keys.len() + g.s3Keys.len() +
		g.members.len() + g.endUsers.len()}
}
