package projectdb

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// The tables of schema auth belong to a login of their own, the auth login, which owns nothing
// else. Code of the project runs with its rights: triggers on auth.users, and casts in the checks
// of foreign keys, which PostgreSQL makes as the owner of the referenced table. So the auth login
// is no superuser, may create nothing, and every statement on these tables runs under it.
//
// The project's owner has the privilege to create triggers on auth.users. Event triggers lend it
// the table for the time of a statement that drops one or comments on it.

// EndUsers returns the pool of the login that owns the tables of schema auth. A statement that
// writes auth.users runs user code: triggers, and cascades into tables of the project. Each
// connection is reset before it is reused.
func (p *Project) EndUsers() *pgxpool.Pool { return p.pool(auth) }

// EndUserRows executes statements on the tables of schema auth that run no user code: reads, and
// changes of other tables than auth.users.
func (p *Project) EndUserRows() pg.Prepared { return pg.Prepared{Pool: p.EndUsers()} }

// EndUsersTx runs f in a transaction of the auth login. An entry in the project's audit log commits
// with it, see [audit.Write].
func (p *Project) EndUsersTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	err := audit.Write(ctx, p.EndUsers(), f)
	if err == nil {
		p.SetUnchained()
	}

	return err
}

// EndUserKey derives a key about the project's end users from the secret of the install.
func (r *Registry) EndUserKey(project uuid.UUID, purpose string) []byte {
	return token.Derive(r.secret, purpose+" of end users of project "+project.String())
}

// EndUserKey is [Registry.EndUserKey] of the project.
func (p *Project) EndUserKey(purpose string) []byte { return p.registry.EndUserKey(p.UUID, purpose) }

// IsUserTrigger reports whether an entry of a dump is a trigger of the project on auth.users, or a
// comment on one. The platform has none there.
func IsUserTrigger(desc, namespace, tag string) bool {
	return namespace == "auth" && (desc == "TRIGGER" || (desc == "COMMENT" && strings.HasPrefix(tag, "TRIGGER ")))
}

// visibleUserColumns are the columns of auth.users that the owner may read: all but hashes and
// tokens, as far as it knows them from its triggers.
var visibleUserColumns = []string{
	"instance_id", "id", "aud", "role", "email", "email_confirmed_at", "invited_at", "confirmation_sent_at",
	"recovery_sent_at", "email_change", "email_change_sent_at", "last_sign_in_at", "raw_app_meta_data",
	"raw_user_meta_data", "is_super_admin", "created_at", "updated_at", "phone", "phone_confirmed_at", "phone_change",
	"phone_change_sent_at", "confirmed_at", "email_change_confirm_status", "banned_until", "reauthentication_sent_at",
	"is_sso_user", "deleted_at", "is_anonymous",
}

// handOverAuth gives the tables of schema auth to the project's auth login, and grants the owner
// its part: foreign keys to auth.users (id), triggers on it, its columns but hashes and tokens, and
// the functions of policies. It does nothing before the migration that creates the tables.
func (r *Registry) handOverAuth(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	role := r.login(project, auth)
	type table struct {
		Name  string
		Owned bool
	}
	tables, err := pg.All[table](ctx, conn, `
		select c.relname as name, c.relowner = (select oid from pg_roles where rolname = @role) as owned
		from pg_class c where c.relnamespace = to_regnamespace('auth') and c.relkind = 'r'`,
		pgx.StrictNamedArgs{"role": role})
	if err != nil || len(tables) == 0 {
		return err
	}

	var statements []string
	for _, t := range tables {
		if !t.Owned {
			statements = append(statements, "alter table "+pg.Quote("auth", t.Name)+" owner to "+pg.Quote(role))
		}
	}

	developer := pg.Quote(r.login(project, owner))
	return execUntriggered(ctx, conn, append(statements,
		"grant usage on schema auth to "+pg.Quote(role)+", "+developer,
		"grant references (id), select ("+strings.Join(visibleUserColumns,
			", ")+"), trigger on auth.users to "+developer,
		"grant execute on function auth.jwt(), auth.uid(), auth.role(), auth.email() to "+developer,
		"grant usage on schema "+pg.Quote(Schema)+" to "+pg.Quote(role),
		"grant execute on function socle.write_audit(text, bytea), socle.lock_audit_entries() to "+pg.Quote(role),
	))
}
