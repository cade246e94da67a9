package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/httpx"
	"socle/internal/platform"
	"socle/internal/tenant"
	"socle/internal/token"
)

// Access says who may call an operation. There is no way to a project but through it.
type Access struct {
	by      source
	role    platform.Role // the least role, where a project is named
	paused  bool          // also in a project that is paused
	deleted bool          // also in one that is deleted, which is not there for any other operation
	tokens  bool          // personal access tokens are taken, where they are not anyway
	signed  bool          // also by a signed URL
}

type source int

const (
	byNobody       source = iota // anyone may call, and nobody is asked who they are
	byWhoever                    // anyone may call, and whoever says who they are is known
	byToken                      // whoever is signed in: it is about their account
	byHeader                     // X-Project names the project
	byPath                       // the path names the project
	byForm                       // the path names a form of the project
	byAddress                    // the path names the project, and strangers are let in to what is public
	byVisitor                    // the path names a form, and those who fill it in are let in
	byOrganization               // the path names the organization
	byInstance                   // nothing is named: the whole instance is meant
)

var (
	anyone          = Access{by: byNobody}
	whoever         = Access{by: byWhoever}
	signedIn        = Access{by: byToken}
	administrator   = Access{by: byInstance, role: platform.Administrator}
	signedInOrToken = Access{by: byToken, tokens: true} // whoever is signed in, or shows a personal access token
)

// project is for members, of that role or a higher one, of the organization of the project that X-Project names.
func project(least platform.Role) Access { return Access{by: byHeader, role: least} }

// projectInPath is project with the project named by the path's projectUUID.
func projectInPath(least platform.Role) Access { return Access{by: byPath, role: least} }

// projectOfForm is project with the project named by a form of its own: the path's formUUID.
func projectOfForm(least platform.Role) Access { return Access{by: byForm, role: least} }

// publicProject is projectInPath for an operation that has something for strangers too: it runs for anyone, and looks
// at the caller's role itself.
func publicProject(least platform.Role) Access { return Access{by: byAddress, role: least} }

// evenPaused is a for an operation that a paused project has too.
func (a Access) evenPaused() Access { a.paused = true; return a }

// evenDeleted is a for an operation that a deleted project has too.
func (a Access) evenDeleted() Access { a.deleted = true; return a }

// inProject reports whether the operation acts in a project.
func (a Access) inProject() bool { return a.by >= byHeader && a.by <= byVisitor }

// organizationInPath is for members, of that role or a higher one, of the organization that the path's organizationUUID names.
func organizationInPath(least platform.Role) Access { return Access{by: byOrganization, role: least} }

// projectHeader is what an operation with byHeader takes beside its own input.
type projectHeader struct {
	Project uuid.UUID `header:"X-Project" required:"true" format:"uuid" doc:"The project that the request acts in."`
}

// params returns the parameters that the access itself takes.
func (a Access) params(registry huma.Registry) []param {
	if a.by != byHeader {
		return nil
	}

	params := paramsOf(registry, reflect.TypeFor[projectHeader]())
	for i := range params {
		params[i].index = nil // read by authenticate; here it is only judged
	}

	return params
}

type callerKey struct{}

// caller returns who makes the request. An operation that anyone may call has nobody.
func caller(ctx context.Context) platform.Caller {
	c, _ := ctx.Value(callerKey{}).(platform.Caller)
	return c
}

// authenticate finds out who asks, as the database has it now, and returns a context that knows. Nobody and
// a token that does not hold cost no connection.
func (a Access) authenticate(ctx context.Context, s *Server, r *http.Request) (context.Context, error) {
	var c platform.Caller
	var err error
	if a.bySignature(r) {
		var of *signed
		of, c, err = s.signer(ctx, r)
		ctx = context.WithValue(ctx, signedKey{}, of)
	} else {
		c, err = a.caller(ctx, s, r)
	}

	if err != nil {
		return nil, err
	}

	if c.Status == platform.Deleted && !a.deleted {
		c.Project, c.Role, c.Status = uuid.NullUUID{}, 0, ""
	}

	known := httpx.From(ctx)
	known.User, known.Project = c.User, c.Project.UUID

	return context.WithValue(ctx, callerKey{}, c), nil
}

// caller returns who asks, the zero Caller for nobody.
func (a Access) caller(ctx context.Context, s *Server, r *http.Request) (platform.Caller, error) {
	nameless := len(r.Header.Values("Authorization")) == 0
	switch {
	case a.by == byNobody, a.by == byWhoever && nameless:
		return platform.Caller{}, nil
	case a.by == byWhoever:
		c, err := s.authenticate(ctx, r, platform.Scope{})
		if fault.Is(err, fault.Unauthenticated) { // a token that does not hold is no token
			return platform.Caller{}, nil
		}

		return c, err
	case a.by == byAddress && nameless:
		return s.admit(ctx, r, platform.Caller{})
	case a.visits(r):
		return s.visitor(ctx, r)
	}

	c, err := s.authenticate(ctx, r, a.scope(r))
	if err != nil || a.by != byAddress || c.Project.Valid {
		return c, err
	}

	return s.admit(ctx, r, c)
}

// admit lets a stranger into the project of the path, if it is there, without a role. Where there is a connection to its database, nobody is asked: a
// project that is not active has none, and what the stranger may have stands in there.
func (s *Server) admit(ctx context.Context, r *http.Request, stranger platform.Caller) (platform.Caller, error) {
	id := optionalUUID(r.PathValue("projectUUID"))
	if !id.Valid {
		return stranger, nil
	}

	if s.projects.Connected(id.UUID) {
		stranger.Project = id
		return stranger, nil
	}

	status, err := s.platform.ProjectStatus(ctx, id.UUID)
	if fault.Is(err, fault.NotFound) || err == nil && status != platform.Active {
		return stranger, nil
	}

	stranger.Project = id
	return stranger, err
}

// scope returns what a request names, if what names it can be read; what can't is
// told apart later, when the parameters are judged.
func (a Access) scope(r *http.Request) platform.Scope {
	switch a.by {
	case byHeader:
		if len(r.Header.Values("X-Project")) == 1 {
			return platform.Scope{Project: optionalUUID(r.Header.Get("X-Project"))}
		}
	case byPath, byAddress:
		return platform.Scope{Project: optionalUUID(r.PathValue("projectUUID"))}
	case byForm, byVisitor:
		return platform.Scope{Form: optionalUUID(r.PathValue("formUUID"))}
	case byOrganization:
		return platform.Scope{Organization: optionalUUID(r.PathValue("organizationUUID"))}
	}

	return platform.Scope{}
}

func optionalUUID(text string) uuid.NullUUID {
	if !isUUID(text) {
		return uuid.NullUUID{}
	}
	return uuid.NullUUID{UUID: uuid.MustParse(text), Valid: true}
}

// enter lets the caller into the project, if the operation acts in one, or refuses them.
func (a Access) enter(ctx context.Context, s *Server) (*tenant.Project, error) {
	c := caller(ctx)
	switch {
	case c.ByToken && !a.takes(c):
		return nil, fault.New(fault.Forbidden,
			"this is not for personal access tokens, or not for one of single projects").WithCode("token_not_allowed")
	case a.by <= byToken:
		return nil, nil
	case a.by == byInstance && !c.Administrator:
		return nil, fault.New(fault.Forbidden, "only an administrator of the instance may do this")
	case a.by == byInstance:
		return nil, nil
	case a.by == byOrganization && c.Organization.Valid:
		return nil, c.Role.Require(a.role)
	case !c.Project.Valid:
		return nil, a.absent()
	case a.by != byAddress && a.by != byVisitor && c.Role.Require(a.role) != nil:
		return nil, c.Role.Require(a.role)
	case c.Status == platform.Paused && !a.paused:
		return nil, paused()
	}

	return s.projects.Open(c.Project.UUID), nil
}

// absent says that the project is not there, or not for the caller.
func (a Access) absent() *fault.Error {
	if a.by == byHeader {
		return fault.OnField(fault.Unauthenticated, "X-Project", "unknown_project", "names no project of yours")
	}
	return fault.New(fault.NotFound, "there is no such thing")
}

func paused() *fault.Error {
	return fault.New(fault.Conflict, "the project is paused").WithCode("project_paused")
}

// overtaken explains a failure for which nobody was known to be at fault, if it comes of the project being paused or deleted meanwhile.
func (a Access) overtaken(ctx context.Context, s *Server, p *tenant.Project, err error) error {
	if p == nil || !fault.Is(err, fault.Internal) && !fault.Is(err, fault.Unavailable) {
		return err
	}

	status, unknown := s.platform.ProjectStatus(ctx, p.UUID)
	switch {
	case unknown != nil && !fault.Is(unknown, fault.NotFound) || status == platform.Active:
		return err
		// strangers are told nothing
	case status == platform.Paused && !a.paused && (a.by != byAddress || caller(ctx).Role != 0):
		return paused().Because(err)
	case !a.paused && status == platform.Paused || !a.deleted && status != platform.Paused:
		return a.absent().Because(err)
	}

	return err
}

// takes reports whether an operation is for a personal access token: not if it is about the user's account, and if the token
// names projects, only what is in a project.
func (a Access) takes(c platform.Caller) bool {
	switch {
	case a.by == byNobody || a.by == byWhoever || a.inProject():
		return true
	case a.by == byToken:
		return a.tokens
	}

	return c.Only == nil
}

// authenticate returns who sends a request by its bearer token.
func (s *Server) authenticate(ctx context.Context, r *http.Request, scope platform.Scope) (platform.Caller, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return platform.Caller{}, fault.New(fault.Unauthenticated,
			"one Authorization header with a bearer token is needed").WithCode("invalid_token")
	}

	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return platform.Caller{}, fault.New(fault.Unauthenticated, "a bearer token is needed").WithCode("invalid_token")
	}

	if strings.HasPrefix(text, token.PersonalPrefix) {
		if !token.IsPersonal(text) {
			return platform.Caller{}, fault.New(fault.Unauthenticated, "the personal access token is not valid").
				WithCode("invalid_token")
		}

		return s.platform.AuthenticateToken(ctx, token.Hash(text), scope)
	}

	claims, err := s.keys().Verify(text, time.Now())
	if err != nil {
		return platform.Caller{}, err
	}

	return s.platform.Authenticate(ctx, claims.User, claims.Session, scope)
}
