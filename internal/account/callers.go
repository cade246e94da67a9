package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// Caller is the authenticated caller of a request with its current rights.
type Caller struct {
	User          uuid.UUID
	Session       uuid.UUID     // UUID of the session or of the personal access token
	ByToken       bool          // authenticated by a personal access token
	Ceiling       Role          // highest role of the token; Administrator for a session
	Projects      []uuid.UUID   // the only projects that the token opens; nil: all
	Administrator bool          // of the install
	Project       uuid.NullUUID // project in the request's scope, if it exists
	Organization  uuid.NullUUID // organization in the request's scope, if it exists
	Role          Role          // in that project or organization; 0: none
	Status        string        // of that project: [platform.Active], [platform.Paused] or [platform.Deleted]
	BackupFirst   bool          // destructive operations in that project require a completed backup
	Account       *User         // the user, if the scope asks for it
}

// CapRole limits a role of the caller's user to the ceiling of the token.
func (c Caller) CapRole(r Role) Role { return max(r, c.Ceiling) }

// Scope is the subject of a request: a project, named by its own UUID or by a form in it, an
// organization, or the account of the caller.
type Scope struct {
	Project, Form, Organization uuid.NullUUID
	Account                     bool
}

// callerQuery joins the caller with the scope of the request and with their role in it.
const callerQuery = `
	select who.user_uuid, who.session, who.ceiling, who.only, who.is_administrator, who.expired, who.stale, p.uuid as project, p.status, p.backup_before_destructive as first, o.uuid as organization,
	       case when coalesce(p.uuid, o.uuid) is null then null when who.is_administrator then who.ceiling else greatest(m.role, who.ceiling) end as role, m.role is not null as member,
	       case when @account then (
			select to_jsonb(a) from (
				select u.uuid, u.username, u.email, u.bio, u.status, u.organization_uuid as "organizationUuid",
					u.created_at as "createdAt", u.updated_at as "updatedAt", ` + homeRole + ` as "roleId"
				from platform.users u where u.uuid = who.user_uuid) a) end as account
	from who
	left join platform.projects p on p.status in ('active', 'paused', 'deleted')
		and p.uuid = coalesce(@project, (select f.project_uuid from platform.forms f where f.uuid = @form))
		and (who.only is null or p.uuid = any(who.only))
	left join platform.organizations o on o.uuid = @organization
	left join platform.members m on m.organization_uuid = coalesce(p.organization_uuid, o.uuid) and m.user_uuid = who.user_uuid`

// callerRow is a row of callerQuery.
type callerRow struct {
	UserUUID, Session      uuid.UUID
	Ceiling                Role
	Only                   []uuid.UUID
	IsAdministrator        bool
	Expired, Stale, Member bool
	Project, Organization  uuid.NullUUID
	Role                   *Role
	Status                 *string
	First                  *bool
	Account                *User
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

// Authenticate returns the caller with a bearer token, which is a personal access token or a
// session's access token, and their role in the request's scope. It fails with Unauthenticated if
// the token is invalid, unknown, revoked or expired, the session has ended, or the user is
// suspended. An invalid token takes no database connection.
func (s *Service) Authenticate(ctx context.Context, bearer string, scope Scope) (Caller, error) {
	if strings.HasPrefix(bearer, token.PersonalPrefix) {
		if !token.IsPersonalToken(bearer) {
			return Caller{}, fault.New(fault.Unauthenticated, "the personal access token is invalid").
				WithCode("invalid_token")
		}

		return s.authenticateToken(ctx, token.Hash(bearer), scope)
	}

	claims, err := s.keyring.Load().Verify(bearer, time.Now())
	if err != nil {
		return Caller{}, err
	}

	return s.AuthenticateSession(ctx, claims.User, claims.Session, scope)
}

// AuthenticateSession returns the caller of a verified access token and their role in the request's
// scope, in one round trip. It fails with Unauthenticated if the user is suspended or the session
// has ended.
func (s *Service) AuthenticateSession(ctx context.Context, user, session uuid.UUID, scope Scope) (Caller, error) {
	row, err := pg.One[callerRow](ctx, s.q, `
		with who as (
			select u.uuid as user_uuid, s.uuid as session, 1::smallint as ceiling, null::uuid[] as only, u.is_administrator, false as expired, false as stale
			from platform.sessions s join platform.users u on u.uuid = s.user_uuid
			where s.uuid = @session and s.user_uuid = @user and s.expires_at > now() and u.status = 'active')`+
		callerQuery,
		pgx.StrictNamedArgs{
			"user": user, "session": session, "project": scope.Project,
			"form": scope.Form, "organization": scope.Organization, "account": scope.Account,
		})
	if fault.Is(err, fault.NotFound) {
		return Caller{}, errSessionEnded()
	}

	return row.caller(), err
}

// authenticateToken is [Service.AuthenticateSession] for the hash of a personal access token. The
// caller has the lesser rights of the token and its user. It records the use of the token at most
// every ten minutes.
func (s *Service) authenticateToken(ctx context.Context, hash []byte, scope Scope) (Caller, error) {
	row, err := pg.One[callerRow](ctx, s.q, `
		with who as (
			select t.user_uuid, t.uuid as session, t.role as ceiling, t.project_uuids as only, u.is_administrator, t.expires_at <= now() as expired,
			       coalesce(t.last_used_at < now() - interval '10 minutes', true) as stale
			from platform.tokens t join platform.users u on u.uuid = t.user_uuid
			where t.hash = @hash and u.status = 'active')`+callerQuery,
		pgx.StrictNamedArgs{
			"hash": hash, "project": scope.Project, "form": scope.Form, "organization": scope.Organization,
			"account": scope.Account,
		})
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
