package platform

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Certificate returns the sealed bytes stored under a name. It fails with NotFound without them.
func (s *Store) Certificate(ctx context.Context, name string) ([]byte, error) {
	return pg.Value[[]byte](ctx, s.q, `select sealed from platform.certificates where name = @name`,
		pgx.StrictNamedArgs{"name": name})
}

// SetCertificate stores sealed bytes under a name.
func (s *Store) SetCertificate(ctx context.Context, name string, sealed []byte) error {
	_, err := pg.Exec(ctx, s.q, `
		insert into platform.certificates (name, sealed) values (@name, @sealed)
		on conflict (name) do update set sealed = excluded.sealed, updated_at = now()`,
		pgx.StrictNamedArgs{"name": name, "sealed": sealed})
	return err
}

// DeleteCertificate removes the bytes stored under a name.
func (s *Store) DeleteCertificate(ctx context.Context, name string) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.certificates where name = @name`,
		pgx.StrictNamedArgs{"name": name})
	return err
}
