package gateway

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/projectdb"
)

// AsHeader is the header in which a platform user names the role or end user to act as.
const AsHeader = "X-Socle-As"

// Values of [AsHeader]. The UUID of an end user follows asUserPrefix.
const (
	asAnon       = "anon"
	asService    = actor.ServiceRole
	asUserPrefix = "user:"
)

// Member is a platform user with a role in the project's organization.
type Member struct {
	User       uuid.UUID
	Credential uuid.UUID    // session or personal access token
	Role       account.Role // viewers only read
	As         string       // as [AsHeader] has it, with the UUID in canonical form
}

// RequireWrite fails with Forbidden unless the member may change rows and files.
func (m *Member) RequireWrite() error { return m.Role.Require(account.Developer) }

// credentialInProject is a credential of the platform, presented to a project.
type credentialInProject struct {
	project    uuid.UUID
	credential account.Credential
}

func (k credentialInProject) String() string {
	return string(k.project[:]) + string(k.credential.User[:]) + string(k.credential.Session[:]) +
		string(k.credential.Hash[:])
}

// endUserID identifies an end user of a project.
type endUserID struct{ project, user uuid.UUID }

func (k endUserID) String() string { return string(k.project[:]) + string(k.user[:]) }

// RefuseAs fails with Invalid if a request has [AsHeader], which its credentials do not admit.
func RefuseAs(r *http.Request) error {
	if _, ok := r.Header[AsHeader]; !ok {
		return nil
	}
	return fault.New(fault.Invalid,
		"The header %s needs an access token of a platform user, who has a role in the project's organization", AsHeader).
		WithCode("as_not_allowed")
}

// identifyMember returns the caller with a platform user's token.
func (p *Project) identifyMember(r *http.Request, text string) (Caller, error) {
	ctx, g := r.Context(), p.gateway
	request := httpx.From(ctx)

	credential, err := g.Accounts.VerifyBearer(text)
	if err != nil {
		return Caller{}, err
	}

	user, err := g.members.find(ctx, request.Start, credentialInProject{p.UUID, credential})
	switch {
	case err != nil:
		return Caller{}, err
	case !user.Project.Valid: // the project's log must not name strangers
		return Caller{}, ErrUnknownProject
	}

	request.User = user.User
	c, err := p.assume(r, &Member{User: user.User, Credential: user.Session, Role: user.Role})
	request.Role, request.Subject = c.Role, c.Subject

	return c, err
}

// assume returns a member's caller with the role and claims that the request's [AsHeader] names.
func (p *Project) assume(r *http.Request, m *Member) (Caller, error) {
	values := r.Header[AsHeader]
	if len(values) == 0 {
		values = []string{asService}
	}

	id, isUser := strings.CutPrefix(values[0], asUserPrefix)
	user, err := uuid.Parse(id)
	switch {
	case len(values) > 1, isUser && (err != nil || len(id) != len(user.String())):
		return Caller{}, errMalformedAs
	case isUser:
		m.As = asUserPrefix + user.String()
		return p.assumeUser(r, m, user)
	case values[0] != asAnon && values[0] != asService:
		return Caller{}, errMalformedAs
	}

	m.As = values[0]
	return Caller{Role: m.As, Member: m}, nil
}

var errMalformedAs = fault.New(fault.Invalid, "The header %s must be %s, %s, or %s and the UUID of an end user",
	AsHeader, asAnon, asService, asUserPrefix).WithCode("invalid_as")

// assumeUser returns the caller that an end user's own token gives.
func (p *Project) assumeUser(r *http.Request, m *Member, user uuid.UUID) (Caller, error) {
	if p.Inactive != nil {
		return Caller{Member: m}, nil
	}

	claims, err := p.gateway.endUsers.find(r.Context(), httpx.From(r.Context()).Start, endUserID{p.UUID, user})
	if fault.Is(err, fault.NotFound) {
		return Caller{}, fault.New(fault.Invalid, "The header %s names no end user of the project", AsHeader).
			WithCode("unknown_end_user").WithCause(err)
	}
	if err != nil {
		return Caller{}, err
	}

	t, err := p.tokens.Claimed(claims)
	return Caller{Role: t.Role, Claims: t.Claims, Subject: t.Subject, Session: t.Session, Member: m}, err
}

// Write is a change by a member through an application interface.
type Write struct {
	Action string // in the audit entry
	Schema string // schema with the table or function, if it is not the default one
}

// Audit adds an entry for a member's change to the project's audit log, before the change: nothing
// changes without an entry, and a change that fails has one too. It takes one round trip.
func (p *Project) Audit(ctx context.Context, r *http.Request, m *Member, w Write) error {
	request := httpx.From(ctx)
	ctx = audit.Begin(ctx, p.gateway.Projects.AuditKey(), audit.Entry{Action: w.Action, Method: r.Method,
		Schema: w.Schema, As: m.As, Actor: m.User.String(), Via: m.Credential.String(), Client: request.Client.String(),
		Request: request.ID, Target: r.URL.Path, Project: p.UUID.String()})

	_, err := projectdb.ChangeOne[struct{ Recorded bool }](ctx, p.Database,
		audit.Change{SQL: `select true as recorded`, Args: pgx.StrictNamedArgs{}})
	return err
}

// newMemberLookups returns the lookups of platform users in projects.
func newMemberLookups(accounts *account.Service) *lookups[credentialInProject, account.Caller] {
	return newLookups(func(ctx context.Context, k credentialInProject) (account.Caller, error) {
		return accounts.AuthenticateCredential(ctx, k.credential,
			account.Scope{Project: uuid.NullUUID{UUID: k.project, Valid: true}})
	})
}
