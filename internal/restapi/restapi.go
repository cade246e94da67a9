// Package restapi serves a project's rows and functions to applications: package rest over the
// project's database, with its roles, pools, catalog and quota.
package restapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/explain"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
	"github.com/socle-dev/socle/internal/rest/session"
	"github.com/socle-dev/socle/internal/schema"
)

// Prefix is the interface's path behind the project's.
const Prefix = "/rest/v1"

// Config has the dependencies that projects share.
type Config struct {
	Bodies        *fair.Pool              // memory for request bodies
	Responses     *session.Budget         // memory for buffered responses
	PoolContended func() bool             // reports whether a request waits for a connection to any project
	Written       func(project uuid.UUID) // called after a request that may have changed rows
	Replicas      *projectdb.Replicas     // nil: none
	Log           *slog.Logger
}

// api serves all projects.
type api struct {
	Config
	unknown *rest.Server // answers like any project with a wrong key
}

// New returns the rows interface for all projects.
func New(c Config) gateway.Interface {
	refuse := func(*http.Request, string) (rest.Caller, error) { return rest.Caller{}, gateway.ErrInvalidKey }
	a := &api{Config: c, unknown: newInactive(refuse)}

	return gateway.Interface{Prefix: Prefix, Open: a.open, Fail: a.fail}
}

// verify is the function that verifies credentials.
type verify = func(*http.Request, string) (rest.Caller, error)

// newInactive returns a server without a database, for a verify that refuses everything.
func newInactive(v verify) *rest.Server {
	return rest.New(rest.Config{Auth: rest.Auth{APIKeys: true, Verify: v}})
}

// fail answers a request without a project. An unknown project answers like any other to a wrong
// key.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if fault.Is(err, fault.NotFound) {
		a.unknown.Serve(w, r, "/")
		return
	}

	response := &query.Error{Status: http.StatusServiceUnavailable, Code: "PGRST000",
		Message: "Database connection error."}
	if fault.Is(err, fault.Internal) {
		response = &query.Error{Status: http.StatusInternalServerError, Code: "PGRSTX00", Message: "Internal error"}
	}

	a.unknown.Fail(w, r, response)
	httpx.From(r.Context()).Err = err
}

// project serves a project.
type project struct {
	*rest.Server
	schemas []string    // exposed schemas, as loaded by catalog
	catalog *rest.Cache // nil for an inactive project
}

func (a *api) open(p *gateway.Project, former gateway.Cache) (gateway.Handler, error) {
	if p.Inactive != nil {
		s := &project{Server: newInactive(refuseInactive(p))}
		return gateway.Handler{Serve: s.Serve, Cache: s}, nil
	}

	s := &project{schemas: p.Settings.Rest.Schemas}
	if f, ok := former.(*project); ok && f.catalog != nil && slices.Equal(f.schemas, s.schemas) {
		s.catalog = f.catalog
	} else {
		s.catalog = a.newCatalog(p)
	}

	s.Server = a.newServer(p, s.catalog)
	return gateway.Handler{Serve: s.Serve, Cache: s}, nil
}

// Forget drops the catalog, because the database is being swapped.
func (p *project) Forget() {
	if p.catalog != nil {
		p.catalog.Forget()
	}
}

// Close stops the catalog's background work.
func (p *project) Close() {
	if p.catalog != nil {
		p.catalog.Close()
	}
}

// Describe returns the project's OpenAPI document as a secret key sees it at the root. url is the
// server's.
func Describe(ctx context.Context, p *gateway.Project, url string) ([]byte, error) {
	s := p.Cache(Prefix).(*project)
	if p.Inactive != nil {
		return nil, fault.New(fault.Conflict, "the project is paused").WithCode("project_paused")
	}

	return s.Description(ctx, "service_role", url+"/projects/"+p.UUID.String()+Prefix)
}

// newServer returns the server of an active project.
func (a *api) newServer(p *gateway.Project, c *rest.Cache) *rest.Server {
	settings := &p.Settings.Rest
	var maxRows *int64
	if settings.MaxRows > 0 {
		maxRows = new(int64(settings.MaxRows))
	}

	return rest.New(rest.Config{
		Catalog: c, Schemas: settings.Schemas, SearchPath: extraSearchPath,
		Auth: rest.Auth{Role: roles(p.Database, settings), Verify: verifier(p), APIKeys: true},
		Limits: rest.Limits{MaxRows: maxRows, Bodies: a.Bodies,
			Owner: func(ctx context.Context) fair.Key { return httpx.In(ctx, p.Database.Key(ctx)) }},
		Features: rest.Features{
			Rollback:   strings.HasPrefix(settings.TxEnd, "rollback"),
			TxOverride: strings.HasSuffix(settings.TxEnd, "-allow-override"),
			Aggregates: settings.Aggregates, Plan: settings.Plan, SharedOrigin: true,
			Transactions: true,
		},
		OpenAPI:   rest.OpenAPI{Server: p.URL(Prefix), Security: true, Credentials: credentials},
		GrantHint: explain.GrantHint,
		Hooks: rest.Hooks{
			Unavailable: func(ctx context.Context) error { return recheck(ctx, p) },
			Quota:       func() (over, far bool) { return p.Database.OverQuota(), p.Database.FarOverQuota() },
			Written:     func() { a.Written(p.UUID) },
		},
		Session:  session.Config{Budget: a.Responses, PoolContended: a.PoolContended},
		Replicas: a.newReplicas(p),
	})
}

// credentials says in the OpenAPI document which tokens a project takes.
const credentials = ". It is a key of the project, a token of its end users, or an access token of a platform user " +
	"with a role in the project's organization: of a developer or higher as service_role, of a viewer for reading " +
	"alone. Such a user acts as another caller by the header " + gateway.AsHeader + ": anon, or user: and the UUID of " +
	"an end user."

// verifier returns the verifier of an active project. A platform user without access to it gets the
// same response as from an unknown project.
func verifier(p *gateway.Project) verify {
	return func(r *http.Request, text string) (rest.Caller, error) {
		c, err := p.Identify(r, text)
		if err == gateway.ErrUnknownProject {
			return rest.Caller{}, gateway.ErrInvalidKey
		}
		if err != nil {
			return rest.Caller{}, err
		}

		caller := rest.Caller{Role: c.Role, Claims: c.Claims, Subject: c.Subject, Session: c.Session}
		if c.Member != nil {
			// A platform token opens more than this project.
			caller.HideCredentials = true
			caller.BeforeWrite = func(ctx context.Context) error { return clearWrite(ctx, p, r, c.Member) }
		}

		return caller, nil
	}
}

// clearWrite admits a member's change, and adds it to the project's audit log.
func clearWrite(ctx context.Context, p *gateway.Project, r *http.Request, m *gateway.Member) error {
	if err := m.RequireWrite(); err != nil {
		return err
	}

	request := httpx.From(ctx)
	w := gateway.Write{Action: audit.ChangeRows, Schema: request.Schema}
	if strings.HasPrefix(request.Target, "/rpc/") {
		w.Action = "callFunction"
	}

	return p.Audit(ctx, r, m, w)
}

// refuseInactive returns the verifier of an inactive project. A caller without valid credentials
// gets the same response as from an unknown project.
func refuseInactive(p *gateway.Project) verify {
	return func(r *http.Request, text string) (rest.Caller, error) {
		_, err := p.Identify(r, text)
		switch {
		case fault.Is(err, fault.Unauthenticated), err == gateway.ErrUnknownProject:
			return rest.Caller{}, gateway.ErrInvalidKey
		case err != nil:
			return rest.Caller{}, err
		}

		return rest.Caller{}, p.Inactive
	}
}

// recheck returns the failure for a project that was paused, deleted or purged since it was opened,
// or nil.
func recheck(ctx context.Context, p *gateway.Project) error {
	err := p.Recheck(ctx)
	if err == gateway.ErrUnknownProject {
		return gateway.ErrInvalidKey
	}

	return err
}

// roles returns the project's roles.
func roles(p *projectdb.Project, settings *platform.RestSettings) func(role string) (rest.Role, bool) {
	anon, authenticated, service := statementTimeout(settings.AnonTimeoutMS),
		statementTimeout(settings.AuthenticatedTimeoutMS), statementTimeout(settings.ServiceRoleTimeoutMS)

	return func(role string) (rest.Role, bool) {
		r := rest.Role{SearchPath: projectdb.RequestPath}
		switch role {
		case "anon":
			r.Pool, r.Settings, r.Anonymous = p.Request(), anon, true
		case "authenticated":
			r.Pool, r.Settings = p.Request(), authenticated
		case "service_role":
			r.Pool, r.Settings = p.Service(), service
		default:
			return rest.Role{}, false
		}

		return r, true
	}
}

// statementTimeout returns the role settings for a statement timeout. 0 means none.
func statementTimeout(milliseconds int) map[string]string {
	if milliseconds == 0 {
		return nil
	}
	return map[string]string{"statement_timeout": strconv.Itoa(milliseconds)}
}

// extraSearchPath lists the search path's schemas after the exposed one, as in
// [projectdb.RequestPath].
var extraSearchPath = []string{"public", schema.ExtensionsSchema}

// newCatalog returns a catalog for the project's exposed schemas.
func (a *api) newCatalog(p *gateway.Project) *rest.Cache {
	return rest.NewCache(rest.Source{
		Pool:      p.Database.Trusted,
		Options:   catalog.Options{Schemas: p.Settings.Rest.Schemas, SearchPath: extraSearchPath},
		Version:   projectdb.CatalogVersion,
		Changes:   projectdb.CatalogChanges,
		AfterRead: projectdb.FoldCatalogVersion,
	}, a.Log)
}
