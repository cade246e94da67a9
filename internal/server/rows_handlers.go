package server

import (
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/authapi"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
	"github.com/socle-dev/socle/internal/rest/session"
	"github.com/socle-dev/socle/internal/s3api"
	"github.com/socle-dev/socle/internal/schema"
	"github.com/socle-dev/socle/internal/storageapi"
)

// projectRows serves the rows of a project.
type projectRows struct {
	*rest.Server
	id       uuid.UUID
	element  *list.Element
	settings string      // JSON of a platform.RestConfig
	schemas  []string    // exposed schemas, as loaded by catalog
	catalog  *rest.Cache // nil if the project is not active
	auth     *authapi.Project
	storage  *storageapi.Project
	s3       *s3api.Project
}

// handler returns the handler of a project with these settings. It replaces the handler of former
// settings, and reloads the catalog only if the schemas differ.
func (s *rows) handler(id uuid.UUID, settings string) (*projectRows, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.requestsSinceTrim++; s.requestsSinceTrim >= trimInterval {
		s.trim()
	}

	former := s.projects[id]
	if former != nil && former.settings == settings {
		s.recent.MoveToFront(former.element)
		return former, nil
	}

	var config platform.RestConfig
	if err := json.Unmarshal([]byte(settings), &config); err != nil {
		return nil, fmt.Errorf("read the settings of the rows API: %w", err)
	}

	p := &projectRows{id: id, settings: settings, schemas: config.Schemas}
	directory, err := s.openDirectory(id, config)
	if err != nil {
		return nil, err
	}

	own, err := directory.PublicKeys()
	if err != nil {
		return nil, err
	}

	verify, err := s.newVerifier(id, append(own, config.Keys...))
	if err != nil {
		return nil, err
	}

	p.auth = &authapi.Project{Directory: directory, Verify: verify, Bodies: s.bodies,
		Unavailable: inactiveFaults[config.Status]}
	p.storage = s.newStorage(id, &config, verify)
	p.s3 = s.newS3(id, &config)

	switch {
	case inactiveErrors[config.Status] != nil:
		p.Server = inactiveHandler(verify, inactiveErrors[config.Status])
	case former != nil && former.catalog != nil && slices.Equal(former.schemas, config.Schemas):
		p.catalog = former.catalog
	default:
		p.catalog = s.newCatalogCache(id, config.Schemas)
	}

	if p.Server == nil {
		p.Server = s.activeHandler(id, p, &config.RestSettings, verify)
	}

	if former != nil {
		s.recent.Remove(former.element) // requests in flight still use it
	}

	s.projects[id], p.element = p, s.recent.PushFront(p)
	return p, nil
}

// activeHandler returns the handler of an active project.
func (s *rows) activeHandler(
	id uuid.UUID, p *projectRows, settings *platform.RestSettings, verify verifier,
) *rest.Server {
	project := s.registry.Open(id)
	var url string
	if s.url != "" {
		url = s.url + "/projects/" + id.String() + rowsPath
	}

	var maxRows *int64
	if settings.MaxRows > 0 {
		maxRows = new(int64(settings.MaxRows))
	}

	return rest.New(rest.Config{
		Catalog: p.catalog, Schemas: p.schemas, SearchPath: extraSearchPath,
		Auth:   rest.Auth{Role: projectRoles(project, settings), Verify: verify, APIKeys: true},
		Limits: rest.Limits{MaxRows: maxRows, Bodies: s.bodies, BodyOwner: bodyOwner(project)},
		Features: rest.Features{
			Rollback:   strings.HasPrefix(settings.TxEnd, "rollback"),
			TxOverride: strings.HasSuffix(settings.TxEnd, "-allow-override"),
			Aggregates: settings.Aggregates, Plan: settings.Plan, SharedOrigin: true,
		},
		OpenAPI: rest.OpenAPI{Server: url, Security: true},
		Hooks: rest.Hooks{
			Unavailable: func(ctx context.Context) error { return s.inactiveError(ctx, id) },
			Quota:       func() (over, far bool) { return project.OverQuota(), project.FarOverQuota() },
		},
		Session: session.Config{Budget: s.responses, PoolContended: s.registry.PoolContended},
	})
}

// bodyOwner returns the function for the owner of the bodies of requests.
func bodyOwner(project *projectdb.Project) func(context.Context) fair.Key {
	return func(ctx context.Context) fair.Key { return httpx.In(ctx, project.Key(ctx)) }
}

// projectRoles returns the roles of a project.
func projectRoles(project *projectdb.Project, settings *platform.RestSettings) func(role string) (rest.Role, bool) {
	anon, authenticated, service := statementTimeout(settings.AnonTimeoutMS),
		statementTimeout(settings.AuthenticatedTimeoutMS), statementTimeout(settings.ServiceRoleTimeoutMS)

	return func(role string) (rest.Role, bool) {
		r := rest.Role{SearchPath: projectdb.RequestPath}
		switch role {
		case "anon":
			r.Pool, r.Settings, r.Anonymous = project.Request(), anon, true
		case "authenticated":
			r.Pool, r.Settings = project.Request(), authenticated
		case "service_role":
			r.Pool, r.Settings = project.Service(), service
		default:
			return rest.Role{}, false
		}

		return r, true
	}
}

// statementTimeout returns the parameters of a role whose statements have a timeout. 0 means none.
func statementTimeout(milliseconds int) map[string]string {
	if milliseconds == 0 {
		return nil
	}
	return map[string]string{"statement_timeout": strconv.Itoa(milliseconds)}
}

// extraSearchPath are the schemas of the search path after the exposed one, as in
// [projectdb.RequestPath].
var extraSearchPath = []string{"public", schema.ExtensionsSchema}

// newCatalogCache returns the catalog cache of a project's exposed schemas.
func (s *rows) newCatalogCache(id uuid.UUID, schemas []string) *rest.Cache {
	return rest.NewCache(rest.Source{
		Pool:      s.registry.Open(id).Trusted,
		Options:   catalog.Options{Schemas: schemas, SearchPath: extraSearchPath},
		Version:   projectdb.CatalogVersion,
		Changes:   projectdb.CatalogChanges,
		AfterRead: projectdb.FoldCatalogVersion,
	}, s.log)
}

// inactiveErrors maps the status of an inactive project to its response.
var inactiveErrors = map[string]*query.Error{
	platform.Paused:  {Status: http.StatusConflict, Code: "project_paused", Message: "The project is paused"},
	platform.Deleted: {Status: http.StatusNotFound, Code: "project_deleted", Message: "The project is deleted"},
}

// inactiveHandler returns the handler of an inactive project. A caller without valid credentials
// gets the same response as from any other project.
func inactiveHandler(verify verifier, failure *query.Error) *rest.Server {
	refuse := func(ctx context.Context, text string) (rest.Caller, error) {
		_, err := verify(ctx, text)
		if fault.Is(err, fault.Unauthenticated) {
			return rest.Caller{}, errBadKey
		}
		if err != nil {
			return rest.Caller{}, err
		}

		return rest.Caller{}, failure
	}

	return rest.New(rest.Config{Auth: rest.Auth{APIKeys: true, Verify: refuse}})
}

// inactiveError returns the response for a project that was paused, deleted or purged since the
// last lookup, nil if it was not.
func (s *rows) inactiveError(ctx context.Context, id uuid.UUID) error {
	entry, err := s.refresh(ctx, cacheKey{project: id}, s.settingsLoader(id))
	if fault.Is(err, fault.NotFound) {
		return errBadKey
	}

	var config platform.RestConfig
	if err != nil || json.Unmarshal([]byte(entry.value), &config) != nil {
		return nil // keep the original error
	}
	if failure := inactiveErrors[config.Status]; failure != nil {
		return failure
	}

	return nil
}

// trim evicts the least recently used projects beyond the memory limit. Requests in flight keep
// their handler; the next request reloads the project.
func (s *rows) trim() {
	s.requestsSinceTrim = 0
	size := 0
	for e := s.recent.Front(); e != nil; {
		p := e.Value.(*projectRows)
		e = e.Next()

		own := projectOverhead + p.Size()
		if own > maxProjectSize || size+own > maxProjectsSize {
			s.drop(p)
			continue
		}

		size += own
	}
}

func (s *rows) drop(p *projectRows) {
	delete(s.projects, p.id)
	s.recent.Remove(p.element)
}
