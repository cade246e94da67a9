package platform

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// RetireLogins records a purged project's logins for later removal.
func (s *Store) RetireLogins(ctx context.Context, names []string) error {
	_, err := pg.Exec(ctx, s.q, `
		insert into platform.retired_roles (name) select unnest(@names::text[]) on conflict (name) do nothing`,
		pgx.StrictNamedArgs{"names": names})
	return err
}

// DueRetiredRole returns a retired login that is due to be dropped and schedules the next attempt.
// The backoff doubles from ten seconds to six hours. It fails with NotFound if none is due.
func (s *Store) DueRetiredRole(ctx context.Context) (string, error) {
	return pg.Value[string](ctx, s.q, `
		update platform.retired_roles
		set tries = tries + 1, next_try = now() + least(interval '10 seconds' * 2 ^ least(tries, 20), interval '6 hours')
		where name = (
			select name from platform.retired_roles where next_try <= now()
			order by next_try limit 1 for update skip locked)
		returning name`)
}

// ForgetRetiredRole deletes a dropped login's record.
func (s *Store) ForgetRetiredRole(ctx context.Context, name string) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.retired_roles where name = @name`,
		pgx.StrictNamedArgs{"name": name})
	return err
}
