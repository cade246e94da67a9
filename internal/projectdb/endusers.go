package projectdb

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// The tables in schema auth belong to a login of their own, the auth login, which owns nothing
// else. Project code runs with its rights: triggers on auth.users, and casts in foreign key checks,
// which PostgreSQL makes as the referenced table's owner. So the auth login is no superuser, may
// create nothing, and every statement on these tables runs under it.
//
// The project's owner has the privilege to create triggers on auth.users. Event triggers lend it
// the table for a statement that drops one or comments on it.

// EndUsers returns the pool for the login that owns the tables in schema auth. A statement that
// writes auth.users runs user code: triggers, and cascades into the project's tables. Each
// connection is reset before it is reused.
func (p *Project) EndUsers() *pgxpool.Pool { return p.pool(authPool) }

// EndUserRows executes statements on the tables in schema auth that run no user code: reads, and
// changes to other tables than auth.users.
func (p *Project) EndUserRows() pg.Prepared { return pg.Prepared{Pool: p.EndUsers()} }

// EndUsersTx runs f in a transaction on the auth login. An entry in the project's audit log commits
// with it, see [audit.Write].
func (p *Project) EndUsersTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	err := audit.Write(ctx, p.EndUsers(), f)
	if err == nil {
		p.SetUnchained()
		p.written()
	}

	return err
}

// EndUserKey derives a key about the project's end users from the install's secret.
func (r *Registry) EndUserKey(project uuid.UUID, purpose string) []byte {
	return token.Derive(r.secret, purpose+" of end users of project "+project.String())
}

// EndUserKey is [Registry.EndUserKey] for the project.
func (p *Project) EndUserKey(purpose string) []byte { return p.registry.EndUserKey(p.UUID, purpose) }
