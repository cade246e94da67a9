package platform

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Certificate returns the sealed bytes stored under a name. It fails with NotFound without them.
func (s *Store) Certificate(ctx context.Context, name string) ([]byte, error) {
	return pg.Value[[]byte](ctx, s.q, `select sealed from platform.certificates where name = @name`,
		pgx.StrictNamedArgs{"name": name})
}

// SetCertificate stores sealed bytes under a name.
func (s *Store) SetCertificate(ctx context.Context, name string, ciphertext []byte) error {
	_, err := pg.Exec(ctx, s.q, `
		insert into platform.certificates (name, sealed) values (@name, @sealed)
		on conflict (name) do update set sealed = excluded.sealed, updated_at = now()`,
		pgx.StrictNamedArgs{"name": name, "sealed": ciphertext})
	return err
}

// DeleteCertificates removes the bytes stored under a name, and under those that it is a path to.
func (s *Store) DeleteCertificates(ctx context.Context, path string) error {
	_, err := pg.Exec(ctx, s.q, `
		delete from platform.certificates where name = @path or starts_with(name, @path || '/')`,
		pgx.StrictNamedArgs{"path": path})
	return err
}

// StoredCertificate describes bytes that are stored under a name.
type StoredCertificate struct {
	Name      string
	Size      int64
	UpdatedAt time.Time
}

// Certificates describes the bytes stored under a name, and under names below it as a path, ordered
// by name.
func (s *Store) Certificates(ctx context.Context, path string) ([]StoredCertificate, error) {
	return pg.All[StoredCertificate](ctx, s.q, `
		select name, octet_length(sealed)::bigint as size, updated_at
		from platform.certificates
		where name = @path or starts_with(name, @path || '/')
		order by name collate "C"`, pgx.StrictNamedArgs{"path": path})
}
