package platform

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// SigningKey is a sealed private key for access tokens, active or retired.
type SigningKey struct {
	ID        string
	Sealed    []byte
	RetiredAt *time.Time
}

// NameKey returns the key that encrypts database names, nil without encryption.
func (s *Store) NameKey(ctx context.Context) ([]byte, error) {
	return pg.Value[[]byte](ctx, s.q, `select name_key from platform.instance`)
}

// SigningKeys returns the active key first, then the keys that were retired less than keep ago.
func (s *Store) SigningKeys(ctx context.Context, keep time.Duration) ([]SigningKey, error) {
	return pg.All[SigningKey](ctx, s.q, `
		select id, sealed, retired_at from platform.signing_keys
		where retired_at is null or retired_at > now() - @keep::interval
		order by retired_at desc nulls first`, pgx.StrictNamedArgs{"keep": keep})
}

// RotateSigningKey stores a new active key and retires the former one.
func (s *Store) RotateSigningKey(ctx context.Context, id string, sealed []byte) error {
	return s.InTx(ctx, func(tx *Store) error {
		if _, err := pg.Exec(ctx, tx.q,
			`update platform.signing_keys set retired_at = now() where retired_at is null`); err != nil {
			return err
		}

		_, err := pg.Exec(ctx, tx.q, `insert into platform.signing_keys (id, sealed) values (@id, @sealed)`,
			pgx.StrictNamedArgs{"id": id, "sealed": sealed})
		return err
	})
}

// SigningKeyAge returns how old the active signing key for access tokens is. It fails with NotFound
// without one.
func (s *Store) SigningKeyAge(ctx context.Context) (time.Duration, error) {
	return pg.Value[time.Duration](ctx, s.q,
		`select now() - created_at from platform.signing_keys where retired_at is null`)
}
