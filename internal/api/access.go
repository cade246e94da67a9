package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"socle/internal/account"
	"socle/internal/fault"
	"socle/internal/httpx"
	"socle/internal/platform"
	"socle/internal/tenant"
)

// Access is the rule for who may call an operation. Every request reaches a project through it.
type Access struct {
	kind         accessKind
	role         platform.Role // minimum role, if the target has roles
	allowPaused  bool          // a paused project is accepted
	allowDeleted bool          // a deleted project is accepted; all other operations answer that it does not exist
	allowTokens  bool          // personal access tokens are accepted, where the kind alone excludes them
	allowSigned  bool          // a signed URL is accepted
}

type accessKind int

const (
	kindAnonymous     accessKind = iota // anyone; credentials are ignored
	kindOptionalUser                    // anyone; valid credentials identify the caller
	kindUser                            // a signed-in user, about their own account
	kindProjectHeader                   // members of the project that X-Project names
	kindProjectPath                     // members of the project that the path names
	kindProjectForm                     // members of the project whose form the path names
	// members of the project that the path names; anonymous callers see its public parts
	kindPublicProject
	kindPublicForm   // members of the project whose form the path names, and respondents to the form
	kindOrganization // members of the organization that the path names
	kindInstance     // administrators of the instance
)

var (
	anonymous       = Access{kind: kindAnonymous}
	optionalUser    = Access{kind: kindOptionalUser}
	signedIn        = Access{kind: kindUser}
	administrator   = Access{kind: kindInstance, role: platform.Administrator}
	signedInOrToken = Access{kind: kindUser, allowTokens: true} // a session or a personal access token
)

// project admits members of the organization that owns the project named by X-Project, with at
// least the given role.
func project(minimum platform.Role) Access { return Access{kind: kindProjectHeader, role: minimum} }

// projectInPath is [project] with the project named by projectUUID in the path.
func projectInPath(minimum platform.Role) Access { return Access{kind: kindProjectPath, role: minimum} }

// projectOfForm is [project] with the project that owns the form named by formUUID in the path.
func projectOfForm(minimum platform.Role) Access { return Access{kind: kindProjectForm, role: minimum} }

// publicProject is [projectInPath] for an operation with a public part. It admits anyone; the
// handler checks the caller's role.
func publicProject(minimum platform.Role) Access {
	return Access{kind: kindPublicProject, role: minimum}
}

// orPaused also accepts a paused project.
func (a Access) orPaused() Access { a.allowPaused = true; return a }

// orDeleted also accepts a deleted project.
func (a Access) orDeleted() Access { a.allowDeleted = true; return a }

// inProject reports whether the operation acts in a project.
func (a Access) inProject() bool {
	switch a.kind {
	case kindProjectHeader, kindProjectPath, kindProjectForm, kindPublicProject, kindPublicForm:
		return true
	}

	return false
}

// organizationInPath admits members, with at least the given role, of the organization named by
// organizationUUID in the path.
func organizationInPath(minimum platform.Role) Access {
	return Access{kind: kindOrganization, role: minimum}
}

// projectHeader is the parameter that kindProjectHeader adds to the input of an operation.
type projectHeader struct {
	Project uuid.UUID `header:"X-Project" required:"true" format:"uuid" doc:"UUID of the project."`
}

// params returns the parameters that the access adds to the operation.
func (a Access) params(registry huma.Registry) []param {
	if a.kind != kindProjectHeader {
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
func caller(ctx context.Context) account.Caller {
	c, _ := ctx.Value(callerKey{}).(account.Caller)
	return c
}

// authenticate identifies the caller from the database and returns a context that holds the caller.
// A request without credentials, or with an invalid token, takes no database connection.
func (a Access) authenticate(ctx context.Context, s *Server, r *http.Request) (context.Context, error) {
	var c account.Caller
	var err error
	if a.hasSignature(r) {
		var signed *urlTerms
		signed, c, err = s.authenticateSignature(ctx, r)
		ctx = context.WithValue(ctx, urlTermsKey{}, signed)
	} else {
		c, err = a.identify(ctx, s, r)
	}

	if err != nil {
		return nil, err
	}

	if c.Status == platform.Deleted && !a.allowDeleted {
		c.Project, c.Role, c.Status = uuid.NullUUID{}, 0, ""
	}

	known := httpx.From(ctx)
	known.User, known.Project = c.User, c.Project.UUID

	return context.WithValue(ctx, callerKey{}, c), nil
}

// identify returns the caller: the zero Caller if anonymous.
func (a Access) identify(ctx context.Context, s *Server, r *http.Request) (account.Caller, error) {
	noCredentials := len(r.Header.Values("Authorization")) == 0
	switch {
	case a.kind == kindAnonymous, a.kind == kindOptionalUser && noCredentials:
		return account.Caller{}, nil
	case a.kind == kindOptionalUser:
		c, err := s.authenticateBearer(ctx, r, account.Scope{})
		if fault.Is(err, fault.Unauthenticated) { // an invalid token counts as none
			return account.Caller{}, nil
		}

		return c, err
	case a.kind == kindPublicProject && noCredentials:
		return s.admitPublic(ctx, r, account.Caller{})
	case a.isRespondent(r):
		return s.authenticateRespondent(ctx, r)
	}

	c, err := s.authenticateBearer(ctx, r, a.scope(r))
	if err != nil || a.kind != kindPublicProject || c.Project.Valid {
		return c, err
	}

	return s.admitPublic(ctx, r, c)
}

// admitPublic admits the caller to the public parts of the project in the path, without a role, if
// the project is active. It skips the status query if the project's database is connected, since
// only active projects are. Grants and container settings in the database limit the access.
func (s *Server) admitPublic(ctx context.Context, r *http.Request, c account.Caller) (account.Caller, error) {
	id := optionalUUID(r.PathValue("projectUUID"))
	if !id.Valid {
		return c, nil
	}

	if s.projects.HasConnection(id.UUID) {
		c.Project = id
		return c, nil
	}

	status, err := s.platform.ProjectStatus(ctx, id.UUID)
	if fault.Is(err, fault.NotFound) || (err == nil && status != platform.Active) {
		return c, nil
	}

	c.Project = id
	return c, err
}

// scope returns the target that the request names, or none if its name is malformed; binding the
// parameters reports that.
func (a Access) scope(r *http.Request) account.Scope {
	switch a.kind {
	case kindProjectHeader:
		if len(r.Header.Values("X-Project")) == 1 {
			return account.Scope{Project: optionalUUID(r.Header.Get("X-Project"))}
		}
	case kindProjectPath, kindPublicProject:
		return account.Scope{Project: optionalUUID(r.PathValue("projectUUID"))}
	case kindProjectForm, kindPublicForm:
		return account.Scope{Form: optionalUUID(r.PathValue("formUUID"))}
	case kindOrganization:
		return account.Scope{Organization: optionalUUID(r.PathValue("organizationUUID"))}
	}

	return account.Scope{}
}

func optionalUUID(text string) uuid.NullUUID {
	if !isUUID(text) {
		return uuid.NullUUID{}
	}
	return uuid.NullUUID{UUID: uuid.MustParse(text), Valid: true}
}

// authorize checks the caller's rights and opens the project, if the operation acts in one.
func (a Access) authorize(ctx context.Context, s *Server) (*tenant.Project, error) {
	c := caller(ctx)
	switch {
	case c.ByToken && !a.acceptsToken(c):
		return nil, fault.New(fault.Forbidden,
			"this operation does not accept the personal access token, or not one limited to projects").
			WithCode("token_not_allowed")
	case a.kind == kindAnonymous, a.kind == kindOptionalUser, a.kind == kindUser:
		return nil, nil
	case a.kind == kindInstance && !c.Administrator:
		return nil, fault.New(fault.Forbidden, "this operation needs an administrator of the instance")
	case a.kind == kindInstance:
		return nil, nil
	case a.kind == kindOrganization && c.Organization.Valid:
		return nil, c.Role.Require(a.role)
	case !c.Project.Valid:
		return nil, a.errNotFound()
	case a.kind != kindPublicProject && a.kind != kindPublicForm && c.Role.Require(a.role) != nil:
		return nil, c.Role.Require(a.role)
	case c.Status == platform.Paused && !a.allowPaused:
		return nil, errPaused()
	}

	return s.projects.Open(c.Project.UUID), nil
}

// errNotFound returns the failure for a project that does not exist or is not visible to the
// caller. Its text equals that of package pg for a missing row, so that callers cannot tell the two
// apart.
func (a Access) errNotFound() *fault.Error {
	if a.kind == kindProjectHeader {
		return fault.OnField(fault.Unauthenticated, "X-Project", "unknown_project",
			"is not the UUID of a project that you can access")
	}
	return fault.Missing()
}

func errPaused() *fault.Error {
	return fault.New(fault.Conflict, "the project is paused").WithCode("project_paused")
}

// explainInternal replaces an Internal or Unavailable error by project_paused or a missing project,
// if the project was paused or deleted during the request. An anonymous caller does not learn that
// a project is paused.
func (a Access) explainInternal(ctx context.Context, s *Server, p *tenant.Project, err error) error {
	if p == nil || (!fault.Is(err, fault.Internal) && !fault.Is(err, fault.Unavailable)) {
		return err
	}

	status, unknown := s.platform.ProjectStatus(ctx, p.UUID)
	switch {
	case (unknown != nil && !fault.Is(unknown, fault.NotFound)) || status == platform.Active:
		return err
	case status == platform.Paused && !a.allowPaused && (a.kind != kindPublicProject || caller(ctx).Role != 0):
		return errPaused().WithCause(err)
	case (!a.allowPaused && status == platform.Paused) || (!a.allowDeleted && status != platform.Paused):
		return a.errNotFound().WithCause(err)
	}

	return err
}

// acceptsToken reports whether the operation accepts the caller's personal access token. Operations
// on the user's account do not; a token limited to projects is accepted only for operations in a
// project.
func (a Access) acceptsToken(c account.Caller) bool {
	switch {
	case a.kind == kindAnonymous || a.kind == kindOptionalUser || a.inProject():
		return true
	case a.kind == kindUser:
		return a.allowTokens
	}

	return c.Projects == nil
}

// authenticateBearer identifies the caller by the request's bearer token.
func (s *Server) authenticateBearer(
	ctx context.Context, r *http.Request, scope account.Scope,
) (account.Caller, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return account.Caller{}, fault.New(fault.Unauthenticated,
			"exactly one Authorization header with a bearer token is required").WithCode("invalid_token")
	}

	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return account.Caller{}, fault.New(fault.Unauthenticated, "the Authorization header must hold a bearer token").
			WithCode("invalid_token")
	}

	return s.accounts.Authenticate(ctx, text, scope)
}
