package operation

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/platform"
)

// Access is the rule for who may call an operation. Every request reaches a project through it. A
// kind of access is one constructor below; the pipeline does not tell them apart.
type Access struct {
	rule     string                // for the OpenAPI document
	security []map[string][]string // for the OpenAPI document; empty: no credentials
	params   reflect.Type          // parameters that it adds to the operation; nil: none
	target   string                // parameter that names the target; "": none

	// identify returns the caller with their role in the target: the zero Caller if anonymous. It
	// may add to the context. A target with a malformed name is none; binding the parameters
	// reports that.
	identify func(ctx context.Context, p *Pipeline, r *http.Request) (context.Context, account.Caller, error)

	// admit fails unless the caller may call the operation. nil admits every caller.
	admit func(c account.Caller) error

	inProject    bool
	missing      func() *fault.Error // project that does not exist or is not visible to the caller
	hidesPause   bool                // a caller without a role does not learn that the project is paused
	allowPaused  bool                // accept a paused project
	allowDeleted bool                // accept a deleted project; otherwise it does not exist
	anyOrigin    bool                // pages from any origin may read the response
	public       bool                // callers without a role may use the project's public parts
	anonymous    bool                // anyone is admitted
}

var bearer = map[string][]string{"bearer": {}}

// Anonymous admits anyone. Credentials are ignored.
var Anonymous = Access{
	rule:     "Anyone can call this.",
	security: []map[string][]string{},
	identify: func(ctx context.Context, _ *Pipeline, _ *http.Request) (context.Context, account.Caller, error) {
		return ctx, account.Caller{}, nil
	},
	anonymous: true,
}

// OptionalUser admits anyone. Valid credentials identify the caller.
var OptionalUser = Access{
	rule:     Anonymous.rule,
	security: []map[string][]string{{}, bearer},
	identify: func(ctx context.Context, p *Pipeline, r *http.Request) (context.Context, account.Caller, error) {
		if !hasCredentials(r) {
			return ctx, account.Caller{}, nil
		}

		c, err := p.authenticateBearer(ctx, r, account.Scope{})
		if fault.Is(err, fault.Unauthenticated) { // an invalid token counts as none
			return ctx, account.Caller{}, nil
		}

		return ctx, c, err
	},
	anonymous: true,
}

// SignedInOrToken admits a signed-in user, about their own account, by a session or a personal
// access token.
var SignedInOrToken = member("", noScope, nil, "Requires a signed-in user.")

// OwnAccount is [SignedInOrToken] for an operation that reads the caller's account. Caller has it.
var OwnAccount = member("", ownAccount, nil, SignedInOrToken.rule)

// SignedIn admits a signed-in user, about their own account.
var SignedIn = member("", noScope, func(c account.Caller) error {
	if c.ByToken {
		return errTokenNotAllowed()
	}
	return nil
}, "Requires a signed-in user. Personal access tokens are not accepted.")

// Administrator admits instance administrators.
var Administrator = member("", noScope, func(c account.Caller) error {
	switch {
	case isLimitedToken(c):
		return errTokenNotAllowed()
	case !c.Administrator:
		return fault.New(fault.Forbidden, "this operation needs an administrator of the instance")
	}

	return nil
}, "Requires an administrator of the instance.")

// OrganizationInPath admits members with at least the given role in the organization that
// organizationUUID in the path names.
func OrganizationInPath(minimum account.Role) Access {
	return member("organizationUUID", organizationInPath, func(c account.Caller) error {
		switch {
		case isLimitedToken(c):
			return errTokenNotAllowed()
		case !c.Organization.Valid:
			return fault.Missing()
		}

		return c.Role.Require(minimum)
	}, "Requires the role of "+minimum.String()+" or higher in the organization.")
}

// Project admits members with at least the given role in the organization that owns the project
// named by X-Project.
func Project(minimum account.Role) Access {
	a := inProject("X-Project", projectInHeader, minimum)
	a.params = reflect.TypeFor[projectHeader]()
	a.missing = func() *fault.Error {
		return fault.OnField(fault.Unauthenticated, "X-Project", "unknown_project",
			"is not the UUID of a project that you can access")
	}

	return a
}

// ProjectInPath is [Project] with the project named by projectUUID in the path.
func ProjectInPath(minimum account.Role) Access {
	return inProject("projectUUID", projectInPath, minimum)
}

// ProjectOfForm is [Project] with the project that owns the form named by formUUID in the path.
func ProjectOfForm(minimum account.Role) Access {
	return inProject("formUUID", formInPath, minimum)
}

// PublicProject is [ProjectInPath] for an operation with a public part. It admits anyone; the
// handler checks the caller's role.
func PublicProject(minimum account.Role) Access {
	a := ProjectInPath(minimum)
	a.admit, a.public, a.hidesPause = nil, true, true
	a.security = []map[string][]string{{}, bearer}
	a.identify = func(ctx context.Context, p *Pipeline, r *http.Request) (context.Context, account.Caller, error) {
		var c account.Caller
		var err error
		if hasCredentials(r) {
			c, err = p.authenticateBearer(ctx, r, projectInPath(r))
		}

		if err == nil && !c.Project.Valid {
			c, err = p.admitPublic(ctx, r, c)
		}

		return ctx, c, err
	}

	return a
}

// PublicForm is [ProjectOfForm] for an operation that respondents may call too, with a project key
// or the form's public link. It permits any origin.
var PublicForm = publicForm()

func publicForm() Access {
	a := ProjectOfForm(account.Viewer)
	a.admit, a.public, a.anyOrigin = nil, true, true
	a.security = []map[string][]string{bearer, {"apikey": {}}, {"link": {}}}
	a.rule = "Requires a key of the project, the form's public link, or a role in the project's organization. " +
		"Pages of any origin can call this."

	identifyMember := a.identify
	a.identify = func(ctx context.Context, p *Pipeline, r *http.Request) (context.Context, account.Caller, error) {
		if c, ok, err := p.config.Respondent(ctx, r); ok {
			return ctx, c, err
		}
		return identifyMember(ctx, p, r)
	}

	return a
}

// OrPaused also accepts a paused project.
func (a Access) OrPaused() Access { a.allowPaused = true; return a }

// OrDeleted also accepts a deleted project.
func (a Access) OrDeleted() Access { a.allowDeleted = true; return a }

// SignatureParam is the query parameter that carries a URL's signature.
const SignatureParam = "signature"

// OrSigned also accepts the operation's signed URLs, from any origin.
func (a Access) OrSigned() Access {
	identify := a.identify
	a.anyOrigin = true
	a.security = append(slices.Clone(a.security), map[string][]string{SignatureParam: {}})
	a.identify = func(ctx context.Context, p *Pipeline, r *http.Request) (context.Context, account.Caller, error) {
		if r.URL.Query().Has(SignatureParam) {
			return p.config.Signer(ctx, r)
		}
		return identify(ctx, p, r)
	}

	return a
}

// member admits callers with a bearer token. scope returns the target.
func member(
	target string, scope func(*http.Request) account.Scope, admit func(account.Caller) error, rule string,
) Access {
	return Access{rule: rule, security: []map[string][]string{bearer}, target: target, admit: admit,
		identify: func(ctx context.Context, p *Pipeline, r *http.Request) (context.Context, account.Caller, error) {
			c, err := p.authenticateBearer(ctx, r, scope(r))
			return ctx, c, err
		}}
}

// inProject is [member] for a role in a project.
func inProject(target string, scope func(*http.Request) account.Scope, minimum account.Role) Access {
	a := member(target, scope, func(c account.Caller) error { return c.Role.Require(minimum) },
		"Requires the role of "+minimum.String()+" or higher in the project's organization.")
	// fault.Missing has package pg's text for a missing row, so that callers cannot tell the two
	// apart.
	a.inProject, a.missing = true, fault.Missing

	return a
}

func noScope(*http.Request) account.Scope { return account.Scope{} }

func ownAccount(*http.Request) account.Scope { return account.Scope{Account: true} }

func organizationInPath(r *http.Request) account.Scope {
	return account.Scope{Organization: OptionalUUID(r.PathValue("organizationUUID"))}
}

func projectInPath(r *http.Request) account.Scope {
	return account.Scope{Project: OptionalUUID(r.PathValue("projectUUID"))}
}

func formInPath(r *http.Request) account.Scope {
	return account.Scope{Form: OptionalUUID(r.PathValue("formUUID"))}
}

// projectHeader is the parameter that [Project] adds to an operation's input.
type projectHeader struct {
	Project uuid.UUID `header:"X-Project" required:"true" format:"uuid" doc:"UUID of the project."`
}

func projectInHeader(r *http.Request) account.Scope {
	if len(r.Header.Values("X-Project")) != 1 {
		return account.Scope{}
	}
	return account.Scope{Project: OptionalUUID(r.Header.Get("X-Project"))}
}

// addedParams returns the parameters that the access adds to the operation.
func (a Access) addedParams(registry huma.Registry) []param {
	if a.params == nil {
		return nil
	}

	params := paramsOf(registry, a.params)
	for i := range params {
		params[i].index = nil // validated here; identify reads the value
	}

	return params
}

// admitPublic admits the caller to the public parts of the project in the path, without a role, if
// the project is active. It skips the status query if the project's database is connected, since
// only active projects are. Grants and container settings in the database limit the access.
func (p *Pipeline) admitPublic(ctx context.Context, r *http.Request, c account.Caller) (account.Caller, error) {
	id := OptionalUUID(r.PathValue("projectUUID"))
	if !id.Valid {
		return c, nil
	}

	if p.config.Projects.HasConnection(id.UUID) {
		c.Project = id
		return c, nil
	}

	status, err := p.config.Store.ProjectStatus(ctx, id.UUID)
	if fault.Is(err, fault.NotFound) || (err == nil && status != platform.Active) {
		return c, nil
	}

	c.Project = id
	return c, err
}

// Authorize checks the caller's rights, and the project's state if the operation acts in one.
func (a Access) Authorize(c account.Caller) error {
	if a.inProject && !c.Project.Valid {
		return a.missing()
	}

	if a.admit != nil {
		if err := a.admit(c); err != nil {
			return err
		}
	}

	if a.inProject && c.Status == platform.Paused && !a.allowPaused {
		return errPaused()
	}

	return nil
}

// explainInternal replaces an Internal or Unavailable error by project_paused or a missing project,
// if the project was paused or deleted during the request.
func (a Access) explainInternal(ctx context.Context, p *Pipeline, project uuid.UUID, err error) error {
	if !fault.Is(err, fault.Internal) && !fault.Is(err, fault.Unavailable) {
		return err
	}

	status, unknown := p.config.Store.ProjectStatus(ctx, project)
	switch {
	case (unknown != nil && !fault.Is(unknown, fault.NotFound)) || status == platform.Active:
		return err
	case status == platform.Paused && !a.allowPaused && (!a.hidesPause || Caller(ctx).Role != 0):
		return errPaused().WithCause(err)
	case (!a.allowPaused && status == platform.Paused) || (!a.allowDeleted && status != platform.Paused):
		return a.missing().WithCause(err)
	}

	return err
}

func errPaused() *fault.Error {
	return fault.New(fault.Conflict, "the project is paused").WithCode("project_paused")
}

// isLimitedToken reports whether the caller has a personal access token that is limited to
// projects. It is accepted only for operations in a project.
func isLimitedToken(c account.Caller) bool { return c.ByToken && c.Projects != nil }

func errTokenNotAllowed() error {
	return fault.New(fault.Forbidden,
		"this operation does not accept the personal access token, or not one limited to projects").
		WithCode("token_not_allowed")
}

func hasCredentials(r *http.Request) bool { return len(r.Header.Values("Authorization")) > 0 }

// OptionalUUID parses a UUID in canonical form; another text is none.
func OptionalUUID(text string) uuid.NullUUID {
	if !isUUID(text) {
		return uuid.NullUUID{}
	}
	return uuid.NullUUID{UUID: uuid.MustParse(text), Valid: true}
}

type callerKey struct{}

// Caller returns the request's caller: the zero Caller if anonymous.
func Caller(ctx context.Context) account.Caller {
	c, _ := ctx.Value(callerKey{}).(account.Caller)
	return c
}
