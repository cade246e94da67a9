package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// Caller is a request's authenticated caller with current rights.
type Caller struct {
	User          uuid.UUID
	Session       uuid.UUID     // UUID of the session or personal access token
	ByToken       bool          // authenticated by a personal access token
	Ceiling       Role          // highest role of the token; Administrator for a session
	Projects      []uuid.UUID   // the only projects that the token opens; nil: all
	Administrator bool          // administrates the install
	Project       uuid.NullUUID // project in the request's scope, if it exists
	Organization  uuid.NullUUID // organization in the request's scope, if it exists
	Role          Role          // in that project or organization; 0: none
	Status        string        // status of that project: [platform.Active], [platform.Paused] or [platform.Deleted]
	BackupFirst   bool          // destructive operations in that project require a completed backup
	Account       *User         // the user, if the scope asks for it
}

// CapRole limits the user's role to the token's ceiling.
func (c Caller) CapRole(r Role) Role { return max(r, c.Ceiling) }

// CheckNewProjects fails with Forbidden if the caller's token is limited to projects, which a new
// one is not among.
func (c Caller) CheckNewProjects() error {
	if c.Projects == nil {
		return nil
	}
	return fault.New(fault.Forbidden, "a personal access token limited to projects cannot create projects").
		WithCode("token_not_allowed")
}

// Scope is a request's subject, one at most: a project, named by its own UUID or by a form in it,
// an organization, or the caller's account.
type Scope struct {
	Project, Form, Organization uuid.NullUUID
	Account                     bool
}

// callerQueries are the statements that find a caller, by the scope of the request. One statement
// for all scopes would be planned anew at each request: PostgreSQL keeps no plan of conditions that
// the absence of an argument makes void.
type callerQueries struct{ alone, project, form, organization, account string }

// newCallerQueries returns the statements for a common table expression of identities.
func newCallerQueries(who string) callerQueries {
	return callerQueries{
		alone:        who + ` select * from who`,
		project:      who + `, subject as (select @project::uuid as uuid)` + projectOfCaller,
		form:         who + `, subject as (` + projectOfForm + `)` + projectOfCaller,
		organization: who + organizationOfCaller,
		account:      who + `select who.*, ` + userColumns + ` from who join platform.users u on u.uuid = who.user_uuid`,
	}
}

const (
	projectOfForm = `select project_uuid as uuid from platform.forms where uuid = @form`

	projectOfCaller = `
		select who.*, p.uuid as project, null::uuid as organization, p.status, p.backup_before_destructive as first,
			case when p.uuid is null then null when who.is_administrator then who.ceiling
				else greatest(m.role, who.ceiling) end as role,
			m.role is not null as member
		from who
		left join (platform.projects p join subject on p.uuid = subject.uuid)
			on p.status in ('active', 'paused', 'deleted') and (who.only is null or p.uuid = any(who.only))
		left join platform.members m on m.organization_uuid = p.organization_uuid and m.user_uuid = who.user_uuid`

	organizationOfCaller = `
		select who.*, null::uuid as project, o.uuid as organization, null::text as status, null::boolean as first,
			case when o.uuid is null then null when who.is_administrator then who.ceiling
				else greatest(m.role, who.ceiling) end as role,
			m.role is not null as member
		from who
		left join platform.organizations o on o.uuid = @organization
		left join platform.members m on m.organization_uuid = o.uuid and m.user_uuid = who.user_uuid`
)

var (
	sessionQueries = newCallerQueries(`
		with who as (
			select u.uuid as user_uuid, s.uuid as session, 1::smallint as ceiling, null::uuid[] as only, u.is_administrator,
				false as expired, false as stale
			from platform.sessions s join platform.users u on u.uuid = s.user_uuid
			where s.uuid = @session and s.user_uuid = @user and s.expires_at > now() and u.status = 'active')`)

	tokenQueries = newCallerQueries(`
		with who as (
			select t.user_uuid, t.uuid as session, t.role as ceiling, t.project_uuids as only, u.is_administrator,
				t.expires_at <= now() as expired,
				coalesce(t.last_used_at < now() - interval '10 minutes', true) as stale
			from platform.tokens t join platform.users u on u.uuid = t.user_uuid
			where t.hash = @hash and u.status = 'active')`)
)

// find returns the caller with their role in a scope. args are those of the identity.
func (c callerQueries) find(
	ctx context.Context, q pg.Querier, scope Scope, args pgx.StrictNamedArgs,
) (row callerRow, err error) {
	switch {
	case scope.Project.Valid:
		args["project"] = scope.Project.UUID
		return pg.One[callerRow](ctx, q, c.project, args)
	case scope.Form.Valid:
		args["form"] = scope.Form.UUID
		return pg.One[callerRow](ctx, q, c.form, args)
	case scope.Organization.Valid:
		args["organization"] = scope.Organization.UUID
		return pg.One[callerRow](ctx, q, c.organization, args)
	case scope.Account:
		owner, err := pg.One[struct {
			identity
			User
		}](ctx, q, c.account, args)
		return callerRow{identity: owner.identity, Account: &owner.User}, err
	}

	row.identity, err = pg.One[identity](ctx, q, c.alone, args)
	return row, err
}

// identity is a user with a session or a token.
type identity struct {
	UserUUID, Session uuid.UUID
	Ceiling           Role
	Only              []uuid.UUID
	IsAdministrator   bool
	Expired, Stale    bool
}

// callerRow is an identity with the user's role in the request's scope.
type callerRow struct {
	identity
	Member                bool
	Project, Organization uuid.NullUUID
	Role                  *Role
	Status                *string
	First                 *bool
	Account               *User `db:"-"`
}

func (e callerRow) caller() Caller {
	c := Caller{User: e.UserUUID, Session: e.Session, Ceiling: e.Ceiling, Projects: slices.Clip(e.Only),
		Administrator: e.IsAdministrator && e.Ceiling == Administrator && e.Only == nil, Account: e.Account}

	if e.Role != nil && (e.IsAdministrator || e.Member) {
		c.Project, c.Organization, c.Role = e.Project, e.Organization, *e.Role
		if e.Status != nil {
			c.Status, c.BackupFirst = *e.Status, *e.First
		}
	}

	return c
}

// Credential identifies the bearer of a valid token: by a session and its user, or by the hash of a
// personal access token.
type Credential struct {
	User, Session uuid.UUID
	Hash          [32]byte // zero for a session
}

// Authenticate returns the caller with a bearer token and their role in the request's scope. It
// fails as [Service.VerifyBearer] and [Service.AuthenticateCredential] do.
func (s *Service) Authenticate(ctx context.Context, bearer string, scope Scope) (Caller, error) {
	credential, err := s.VerifyBearer(bearer)
	if err != nil {
		return Caller{}, err
	}

	request := httpx.From(ctx)
	if credential.User != uuid.Nil {
		request.Share = fair.Key{Account: credential.User.String()}
	}

	c, err := s.AuthenticateCredential(ctx, credential, scope)
	if err == nil {
		request.Share = fair.Key{Account: c.User.String()}
	}

	return c, err
}

// VerifyBearer returns the credential of a bearer token, which is a personal access token or a
// session's access token. It fails with Unauthenticated if the token is malformed, was not signed
// by this install, or is a session's and expired. It takes no database connection.
func (s *Service) VerifyBearer(bearer string) (Credential, error) {
	if strings.HasPrefix(bearer, token.PersonalPrefix) {
		if !token.IsPersonalToken(bearer) {
			return Credential{}, fault.New(fault.Unauthenticated, "the personal access token is invalid").
				WithCode("invalid_token")
		}

		return Credential{Hash: token.Sum(bearer)}, nil
	}

	claims, err := s.keyring.Load().Verify(bearer, time.Now())
	return Credential{User: claims.User, Session: claims.Session}, err
}

// AuthenticateCredential returns the caller with a credential and their role in the request's
// scope. It fails with Unauthenticated if the token is unknown, revoked or expired, the session has
// ended, or the user is suspended.
func (s *Service) AuthenticateCredential(ctx context.Context, c Credential, scope Scope) (Caller, error) {
	if c.User == uuid.Nil {
		return s.authenticateToken(ctx, c.Hash[:], scope)
	}
	return s.AuthenticateSession(ctx, c.User, c.Session, scope)
}

// AuthenticateSession returns the caller of a verified access token and their role in the request's
// scope, in one round trip. It fails with Unauthenticated if the user is suspended or the session
// has ended.
func (s *Service) AuthenticateSession(ctx context.Context, user, session uuid.UUID, scope Scope) (Caller, error) {
	row, err := sessionQueries.find(ctx, s.q, scope, pgx.StrictNamedArgs{"user": user, "session": session})
	if fault.Is(err, fault.NotFound) {
		return Caller{}, errSessionEnded()
	}

	return row.caller(), err
}

// authenticateToken is [Service.AuthenticateSession] for the hash of a personal access token. The
// caller has the lesser rights of the token and its user. It records the use of the token at most
// every ten minutes.
func (s *Service) authenticateToken(ctx context.Context, hash []byte, scope Scope) (Caller, error) {
	row, err := tokenQueries.find(ctx, s.q, scope, pgx.StrictNamedArgs{"hash": hash})
	switch {
	case fault.Is(err, fault.NotFound):
		return Caller{}, fault.New(fault.Unauthenticated, "the token is unknown or was revoked").
			WithCode("invalid_token")
	case err == nil && row.Expired:
		return Caller{}, fault.New(fault.Unauthenticated, "the token has expired").WithCode("token_expired")
	case err == nil && row.Stale:
		err = s.touchToken(ctx, row.Session)
	}

	c := row.caller()
	c.ByToken = true

	return c, err
}

// AuthenticateSigner returns a caller for the user who signed a URL, with the user's current role
// in a project. It fails with Unauthenticated if the user has no role in the project any more.
func (s *Service) AuthenticateSigner(ctx context.Context, user, project uuid.UUID) (Caller, error) {
	row, err := pg.One[struct {
		IsAdministrator bool
		Role            *Role
		Status          string
	}](ctx, s.q, `
		select u.is_administrator, p.status, case when u.is_administrator then 1 else m.role end as role
		from platform.users u
		join platform.projects p on p.uuid = @project and p.status in ('active', 'paused', 'deleted')
		left join platform.members m on m.organization_uuid = p.organization_uuid and m.user_uuid = u.uuid
		where u.uuid = @user and u.status = 'active'`,
		pgx.StrictNamedArgs{"user": user, "project": project})
	if fault.Is(err, fault.NotFound) || (err == nil && row.Role == nil) {
		return Caller{}, fault.New(fault.Unauthenticated, "the user who signed the URL no longer has access").
			WithCode("invalid_signature")
	}
	if err != nil {
		return Caller{}, err
	}

	return Caller{
		User:          user,
		Administrator: row.IsAdministrator,
		Project:       uuid.NullUUID{UUID: project, Valid: true},
		Role:          *row.Role,
		Status:        row.Status,
	}, nil
}
