package platform

import (
	"context"
	"time"

	"socle/internal/pg"
)

// Version returns the version of the PostgreSQL server and the duration of the query.
func (s *Store) Version(ctx context.Context) (string, time.Duration, error) {
	start := time.Now()
	version, err := pg.Value[string](ctx, s.q, `select current_setting('server_version')`)
	return version, time.Since(start), err
}

// SigningKeyAge returns the age of the active signing key for access tokens. It fails with NotFound
// without one.
func (s *Store) SigningKeyAge(ctx context.Context) (time.Duration, error) {
	return pg.Value[time.Duration](ctx, s.q,
		`select now() - created_at from platform.signing_keys where retired_at is null`)
}
