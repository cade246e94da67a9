// Package platformtest provides tests with separate platform databases, each with one user and
// project rows, but no project databases.
package platformtest

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
)

// Install is a platform database with a user and their organization.
type Install struct {
	*platform.DB
	t                  testing.TB
	User, Organization uuid.UUID
}

// New returns an install whose database is dropped when the test ends.
func New(t testing.TB) Install {
	t.Helper()

	url := pgtest.Clone(t, "platform", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)

		return platform.Migrate(ctx, conn)
	})
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	i := Install{DB: platform.NewDB(pool), t: t, User: uuid.New(), Organization: uuid.New()}
	i.Exec(`insert into platform.organizations (uuid, name) values ($1, 'ada')`, i.Organization)
	i.Exec(`insert into platform.users
		(uuid, username, username_folded, email, email_folded, password_hash, organization_uuid)
		values ($1, 'ada', 'ada', 'ada', 'ada', '', $2)`, i.User, i.Organization)

	return i
}

// Exec runs a statement.
func (i Install) Exec(sql string, args ...any) {
	i.t.Helper()

	if _, err := pg.Exec(i.t.Context(), i.Querier(), sql, args...); err != nil {
		i.t.Fatal(err)
	}
}

// Project creates an active project's row.
func (i Install) Project() uuid.UUID {
	i.t.Helper()

	id := uuid.New()
	i.Exec(`insert into platform.projects (uuid, organization_uuid, name, status, created_by, updated_by)
		values ($1, $2, $3, 'active', $4, $4)`, id, i.Organization, id.String(), i.User)

	return id
}

// SetStatus sets a project's status.
func (i Install) SetStatus(project uuid.UUID, status string) {
	i.t.Helper()
	i.Exec(`update platform.projects set status = $2, deleted_at = now() where uuid = $1`, project, status)
}
