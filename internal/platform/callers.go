package platform

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// Caller is who makes a request, as the database has it at this moment.
type Caller struct {
	User          uuid.UUID
	Session       uuid.UUID     // or the personal access token
	ByToken       bool          // it is a personal access token
	Ceiling       Role          // what the token may do at most; Administrator in a session
	Only          []uuid.UUID   // the projects that the token is for; nil: all
	Administrator bool          // of the instance
	Project       uuid.NullUUID // the project that the request names, if it is there
	Organization  uuid.NullUUID // the organization that the request names, if it is there
	Role          Role          // in that project or organization; 0 if the caller has no business in it
	Status        string        // of that project: [Active], [Paused] or [Deleted]
	BackupFirst   bool          // nothing of that project is destroyed before a backup of it is completed
}

// AtMost returns a role of the caller's user as far as the caller may use it.
func (c Caller) AtMost(r Role) Role { return max(r, c.Ceiling) }

// Scope is what a request names: a project, by its own id or by the id of a form in it, or else an organization.
type Scope struct{ Project, Form, Organization uuid.NullUUID }

// entering joins who asks with what the request names, and with their role there.
const entering = `
	select who.user_uuid, who.session, who.ceiling, who.only, who.is_administrator, who.expired, who.stale, p.uuid as project, p.status, p.backup_before_destructive as first, o.uuid as organization,
	       case when coalesce(p.uuid, o.uuid) is null then null when who.is_administrator then who.ceiling else greatest(m.role, who.ceiling) end as role, m.role is not null as member
	from who
	left join platform.projects p on p.status in ('active', 'paused', 'deleted')
		and p.uuid = coalesce(@project, (select f.project_uuid from platform.forms f where f.uuid = @form))
		and (who.only is null or p.uuid = any(who.only))
	left join platform.organizations o on o.uuid = @organization
	left join platform.members m on m.organization_uuid = coalesce(p.organization_uuid, o.uuid) and m.user_uuid = who.user_uuid`

// entered is a row of entering.
type entered struct {
	UserUUID, Session      uuid.UUID
	Ceiling                Role
	Only                   []uuid.UUID
	IsAdministrator        bool
	Expired, Stale, Member bool
	Project, Organization  uuid.NullUUID
	Role                   *Role
	Status                 *string
	First                  *bool
}

func (e entered) caller() Caller {
	c := Caller{User: e.UserUUID, Session: e.Session, Ceiling: e.Ceiling, Only: slices.Clip(e.Only),
		Administrator: e.IsAdministrator && e.Ceiling == Administrator && e.Only == nil}

	if e.Role != nil && (e.IsAdministrator || e.Member) {
		c.Project, c.Organization, c.Role = e.Project, e.Organization, *e.Role
		if e.Status != nil {
			c.Status, c.BackupFirst = *e.Status, *e.First
		}
	}

	return c
}

// Authenticate returns the caller that a verified token names, and their role in what the
// request names, in one round trip. Whoever is suspended, and whose session ended, is nobody: Unauthenticated.
func (s *Store) Authenticate(ctx context.Context, user, session uuid.UUID, scope Scope) (Caller, error) {
	row, err := pg.One[entered](ctx, s.q, `
		with who as (
			select u.uuid as user_uuid, s.uuid as session, 1::smallint as ceiling, null::uuid[] as only, u.is_administrator, false as expired, false as stale
			from platform.sessions s join platform.users u on u.uuid = s.user_uuid
			where s.uuid = @session and s.user_uuid = @user and s.expires_at > now() and u.status = 'active')`+entering,
		pgx.StrictNamedArgs{
			"user": user, "session": session, "project": scope.Project,
			"form": scope.Form, "organization": scope.Organization,
		})
	if fault.Is(err, fault.NotFound) {
		return Caller{}, fault.New(fault.Unauthenticated, "the session has ended").WithCode("invalid_token")
	}

	return row.caller(), err
}

// AuthenticateToken is [Store.Authenticate] for a personal access token of this hash: the caller may do what the token and its
// user both may. Once in ten minutes it notes that the token is in use.
func (s *Store) AuthenticateToken(ctx context.Context, hash []byte, scope Scope) (Caller, error) {
	row, err := pg.One[entered](ctx, s.q, `
		with who as (
			select t.user_uuid, t.uuid as session, t.role as ceiling, t.project_uuids as only, u.is_administrator, t.expires_at <= now() as expired,
			       coalesce(t.last_used_at < now() - interval '10 minutes', true) as stale
			from platform.tokens t join platform.users u on u.uuid = t.user_uuid
			where t.hash = @hash and u.status = 'active')`+entering,
		pgx.StrictNamedArgs{
			"hash": hash, "project": scope.Project, "form": scope.Form, "organization": scope.Organization,
		})
	switch {
	case fault.Is(err, fault.NotFound):
		return Caller{}, fault.New(fault.Unauthenticated, "the token was revoked, or never made").
			WithCode("invalid_token")
	case err == nil && row.Expired:
		return Caller{}, fault.New(fault.Unauthenticated, "the token has expired").WithCode("token_expired")
	case err == nil && row.Stale:
		err = s.TouchToken(ctx, row.Session)
	}

	c := row.caller()
	c.ByToken = true

	return c, err
}
