package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
)

// CreateSession opens a session of a user whose password has this hash. refreshHash is the hash of the session's
// refresh token. Sessions of the user that are long over are removed on the way. It fails with
// Unauthenticated if the password has been changed, or the user suspended, since the hash was read: the row's lock
// leaves no moment between in which a session could outlive the password that opened it.
func (s *Store) CreateSession(ctx context.Context, user uuid.UUID, passwordHash string, refreshHash []byte, expires time.Time) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return id, err
	}
	audit.By(ctx, user)
	n, err := change(ctx, s, func(tx *Store) (int64, error) {
		return pg.Exec(ctx, tx.q, `
		with over as (delete from platform.sessions where user_uuid = @user and expires_at < now())
		insert into platform.sessions (uuid, user_uuid, refresh_hash, expires_at)
		select @id, u.uuid, @refresh, @expires from platform.users u
		where u.uuid = @user and u.password_hash = @password and u.status = 'active'
		for share`,
			pgx.StrictNamedArgs{"id": id, "user": user, "password": passwordHash, "refresh": refreshHash, "expires": expires})
	})
	if err == nil && n == 0 {
		err = fault.New(fault.Unauthenticated, "the password was changed").WithCode("invalid_credentials")
	}
	return id, err
}

func (s *Store) endSessions(ctx context.Context, user, keep uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.sessions where user_uuid = @user and uuid <> @keep`,
		pgx.StrictNamedArgs{"user": user, "keep": keep})
	return err
}

// Caller is who makes a request, as the database has it at this moment.
type Caller struct {
	User          uuid.UUID
	Session       uuid.UUID
	Administrator bool
	Project       uuid.NullUUID // the project that the request names, if it is there
	Role          Role          // in that project; 0 if the caller has no business in it
	Status        string        // of that project: [Active], [Paused] or [Deleted]
}

// Scope is the project that a request names: by its own id, or by the id of a form in it.
type Scope struct{ Project, Form uuid.NullUUID }

// Authenticate returns the caller that a verified token names, and their role in the project that
// the request names, in one round trip. Whoever is suspended, and whose session ended, is nobody: Unauthenticated.
func (s *Store) Authenticate(ctx context.Context, user, session uuid.UUID, scope Scope) (Caller, error) {
	row, err := pg.One[struct {
		IsAdministrator bool
		Project         uuid.NullUUID
		Role            *Role
		Status          *string
	}](ctx, s.q, `
		select u.is_administrator, p.uuid as project, p.status,
		       case when p.uuid is null then null when u.is_administrator then 1 else m.role end as role
		from platform.sessions s
		join platform.users u on u.uuid = s.user_uuid
		left join platform.projects p on p.status in ('active', 'paused', 'deleted')
			and p.uuid = coalesce(@project, (select f.project_uuid from platform.forms f where f.uuid = @form))
		left join platform.members m on m.organization_uuid = p.organization_uuid and m.user_uuid = u.uuid
		where s.uuid = @session and s.user_uuid = @user and s.expires_at > now() and u.status = 'active'`,
		pgx.StrictNamedArgs{"user": user, "session": session, "project": scope.Project, "form": scope.Form})
	if fault.Is(err, fault.NotFound) {
		return Caller{}, fault.New(fault.Unauthenticated, "the session has ended").WithCode("invalid_token")
	}
	if err != nil {
		return Caller{}, err
	}
	c := Caller{User: user, Session: session, Administrator: row.IsAdministrator}
	if row.Role != nil {
		c.Project, c.Role, c.Status = row.Project, *row.Role, *row.Status
	}
	return c, nil
}
