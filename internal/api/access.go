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

// Access is the rule for who may call an operation. Every request reaches a project through it.
type Access struct {
	by      source
	role    platform.Role // minimum role, if the target has roles
	paused  bool          // a paused project is accepted
	deleted bool          // a deleted project is accepted; all other operations answer that it does not exist
	tokens  bool          // personal access tokens are accepted, where the source alone excludes them
	signed  bool          // a signed URL is accepted
}

type source int

const (
	byNobody       source = iota // anyone; credentials are ignored
	byWhoever                    // anyone; valid credentials identify the caller
	byToken                      // a signed-in user, about their own account
	byHeader                     // members of the project that X-Project names
	byPath                       // members of the project that the path names
	byForm                       // members of the project whose form the path names
	byAddress                    // members of the project that the path names; anonymous callers see its public parts
	byVisitor                    // members of the project whose form the path names, and respondents to the form
	byOrganization               // members of the organization that the path names
	byInstance                   // administrators of the instance
)

var (
	anyone          = Access{by: byNobody}
	whoever         = Access{by: byWhoever}
	signedIn        = Access{by: byToken}
	administrator   = Access{by: byInstance, role: platform.Administrator}
	signedInOrToken = Access{by: byToken, tokens: true} // a session or a personal access token
)

// project admits members of the organization that owns the project named by X-Project, with at
// least the given role.
func project(least platform.Role) Access { return Access{by: byHeader, role: least} }

// projectInPath is [project] with the project named by projectUUID in the path.
func projectInPath(least platform.Role) Access { return Access{by: byPath, role: least} }

// projectOfForm is [project] with the project that owns the form named by formUUID in the path.
func projectOfForm(least platform.Role) Access { return Access{by: byForm, role: least} }

// publicProject is [projectInPath] for an operation with a public part. It admits anyone; the
// handler checks the caller's role.
func publicProject(least platform.Role) Access { return Access{by: byAddress, role: least} }

// evenPaused also accepts a paused project.
func (a Access) evenPaused() Access { a.paused = true; return a }

// evenDeleted also accepts a deleted project.
func (a Access) evenDeleted() Access { a.deleted = true; return a }

// inProject reports whether the operation acts in a project.
func (a Access) inProject() bool { return a.by >= byHeader && a.by <= byVisitor }

// organizationInPath admits members, with at least the given role, of the organization named by
// organizationUUID in the path.
func organizationInPath(least platform.Role) Access { return Access{by: byOrganization, role: least} }

// projectHeader is the parameter that byHeader adds to the input of an operation.
type projectHeader struct {
	Project uuid.UUID `header:"X-Project" required:"true" format:"uuid" doc:"The project that the request acts in."`
}

// params returns the parameters that the access adds to the operation.
func (a Access) params(registry huma.Registry) []param {
	if a.by != byHeader {
		return nil
	}

	params := paramsOf(registry, reflect.TypeFor[projectHeader]())
	for i := range params {
		params[i].index = nil // validated here; authenticate reads the value
	}

	return params
}

type callerKey struct{}

// caller returns the caller of the request: the zero Caller if anonymous.
func caller(ctx context.Context) platform.Caller {
	c, _ := ctx.Value(callerKey{}).(platform.Caller)
	return c
}

// authenticate identifies the caller from the database and returns a context that holds the caller.
// A request without credentials, or with an invalid token, takes no database connection.
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

// caller identifies the caller: the zero Caller if anonymous.
func (a Access) caller(ctx context.Context, s *Server, r *http.Request) (platform.Caller, error) {
	nameless := len(r.Header.Values("Authorization")) == 0
	switch {
	case a.by == byNobody, a.by == byWhoever && nameless:
		return platform.Caller{}, nil
	case a.by == byWhoever:
		c, err := s.authenticate(ctx, r, platform.Scope{})
		if fault.Is(err, fault.Unauthenticated) { // an invalid token counts as none
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

// admit lets an anonymous caller into the project of the path, without a role, if the project is
// active. It skips the status query if the project's database is connected, since only active
// projects are. The database itself holds what is public.
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

// scope returns the target that the request names, or none if its name is malformed; binding the
// parameters reports that.
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

// enter checks the caller's rights and opens the project, if the operation acts in one.
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

// absent returns the failure for a project that does not exist or is not visible to the caller.
func (a Access) absent() *fault.Error {
	if a.by == byHeader {
		return fault.OnField(fault.Unauthenticated, "X-Project", "unknown_project", "names no project of yours")
	}
	return fault.New(fault.NotFound, "there is no such thing")
}

func paused() *fault.Error {
	return fault.New(fault.Conflict, "the project is paused").WithCode("project_paused")
}

// overtaken replaces an Internal or Unavailable error by project_paused or a missing project, if
// the project was paused or deleted during the request.
func (a Access) overtaken(ctx context.Context, s *Server, p *tenant.Project, err error) error {
	if p == nil || !fault.Is(err, fault.Internal) && !fault.Is(err, fault.Unavailable) {
		return err
	}

	status, unknown := s.platform.ProjectStatus(ctx, p.UUID)
	switch {
	case unknown != nil && !fault.Is(unknown, fault.NotFound) || status == platform.Active:
		return err
		// anonymous callers do not learn that a project is paused
	case status == platform.Paused && !a.paused && (a.by != byAddress || caller(ctx).Role != 0):
		return paused().Because(err)
	case !a.paused && status == platform.Paused || !a.deleted && status != platform.Paused:
		return a.absent().Because(err)
	}

	return err
}

// takes reports whether the operation accepts the caller's personal access token. Operations on the
// user's account do not; a token limited to projects is accepted only for operations in a project.
func (a Access) takes(c platform.Caller) bool {
	switch {
	case a.by == byNobody || a.by == byWhoever || a.inProject():
		return true
	case a.by == byToken:
		return a.tokens
	}

	return c.Only == nil
}

// authenticate identifies the caller by the request's bearer token.
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
