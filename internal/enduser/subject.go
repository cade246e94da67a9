package enduser

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Subject returns the subject of end users. A restore keeps their rows, except for the place of
// password hashes in backups of former releases.
func (s *Service) Subject() projectdb.Subject {
	return projectdb.Subject{Schema: "auth", Sweep: s.Sweep, Restore: projectdb.Restore{Prepare: hidePasswords}}
}

// hidePasswords moves the hashes in auth.users and auth.sign_ups to auth.passwords. It does nothing
// before the migration that creates the table, and moves them.
func hidePasswords(ctx context.Context, tx pgx.Tx) error {
	exists, err := pg.Value[bool](ctx, tx, `select to_regprocedure('auth.hide_passwords()') is not null`)
	if err != nil || !exists {
		return err
	}

	_, err = pg.Exec(ctx, tx, `select auth.hide_passwords()`)
	return err
}
