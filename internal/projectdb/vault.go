package projectdb

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// The secrets of schema vault are encrypted and decrypted by SQL functions, under a random key of
// the project. socle.vault_keys has the key sealed under a key of the server for this project, and
// [OpenedVaultKeys] has it in the clear. Only the platform's login and the dump login read the two.

// OpenedVaultKeys is the table of the keys in the clear. No dump has its rows.
const OpenedVaultKeys = "opened_vault_keys"

const vaultKeySize = 64 // bytes: half for encryption, half for authentication

// vaultKey is a key of schema vault.
type vaultKey struct {
	ID  uuid.UUID
	Key []byte
}

func newVaultKey() vaultKey {
	k := vaultKey{uuid.New(), make([]byte, vaultKeySize)}
	rand.Read(k.Key) // never fails

	return k
}

// vaultSealKey derives the key that seals the key of a project's vault.
func (r *Registry) vaultSealKey(project uuid.UUID) []byte {
	return token.Derive(r.secret, "vault of project "+project.String())
}

// CreateVaultKey creates the key of a project's vault, or opens the sealed one, unless it is open.
// It does nothing before the migration that creates the tables. q is of the platform's login in the
// project's database, or in a copy of it.
func (r *Registry) CreateVaultKey(ctx context.Context, q pg.Querier, project uuid.UUID) error {
	exists, err := hasVaultKeys(ctx, q)
	if err != nil || !exists {
		return err
	}

	open, err := pg.Value[bool](ctx, q, `
		select exists (select from socle.vault_keys k join socle.opened_vault_keys o on o.id = k.id)`)
	if err != nil || open {
		return err
	}

	key, sealed, err := r.openVaultKey(ctx, q, project)
	switch {
	case err != nil:
		return err
	case key != nil:
		return putOpened(ctx, q, *key)
	case sealed:
		return nil // by another project, which no restore leaves behind
	}

	return r.putVaultKey(ctx, q, project, newVaultKey())
}

// RestoreVaultKey opens the key of the vault in a copy whose platform's tables were loaded from a
// backup of project from. If that is another project than to, whose copy it is, the secrets are
// encrypted again under a new key, so that neither project can decrypt later secrets of the other.
// Secrets stay unreadable if from did not seal the key: an imported backup of another project.
func (r *Registry) RestoreVaultKey(ctx context.Context, tx pgx.Tx, from, to uuid.UUID) error {
	exists, err := hasVaultKeys(ctx, tx)
	if err != nil || !exists {
		return err
	}

	if _, err := pg.Exec(ctx, tx, `delete from socle.opened_vault_keys`); err != nil {
		return err
	}

	former, _, err := r.openVaultKey(ctx, tx, from)
	if err != nil {
		return err
	}
	if former != nil {
		if err := putOpened(ctx, tx, *former); err != nil || from == to {
			return err
		}
	}

	if _, err := pg.Exec(ctx, tx, `delete from socle.vault_keys`); err != nil {
		return err
	}
	if err := r.putVaultKey(ctx, tx, to, newVaultKey()); err != nil || former == nil {
		return err
	}

	id := pgx.StrictNamedArgs{"id": former.ID}
	if _, err := pg.Exec(ctx, tx, `select vault.change_key(@id)`, id); err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `delete from socle.opened_vault_keys where id = @id`, id)
	return err
}

func hasVaultKeys(ctx context.Context, q pg.Querier) (bool, error) {
	return pg.Value[bool](ctx, q, `select to_regclass('socle.vault_keys') is not null`)
}

// openVaultKey returns the key of a vault if project has sealed it, and whether there is a sealed
// one.
func (r *Registry) openVaultKey(ctx context.Context, q pg.Querier, project uuid.UUID) (*vaultKey, bool, error) {
	type sealedKey struct {
		ID     uuid.UUID
		Sealed []byte
	}
	keys, err := pg.All[sealedKey](ctx, q, `select id, sealed from socle.vault_keys`)
	if err != nil || len(keys) == 0 {
		return nil, false, err
	}

	key, err := token.Open(r.vaultSealKey(project), keys[0].Sealed)
	if errors.Is(err, token.ErrSealed) || (err == nil && len(key) != vaultKeySize) {
		return nil, true, nil
	}

	return &vaultKey{keys[0].ID, key}, true, err
}

// putVaultKey stores the key of a vault that has none, sealed for a project and open. Of two calls
// at the same time, the first one stores its key.
func (r *Registry) putVaultKey(ctx context.Context, q pg.Querier, project uuid.UUID, k vaultKey) error {
	sealed, err := token.Seal(r.vaultSealKey(project), k.Key)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, q, `
		with sealed as (
			insert into socle.vault_keys (id, sealed) values (@id, @sealed) on conflict (only_one) do nothing returning id
		)
		insert into socle.opened_vault_keys (id, key) select id, @key from sealed`,
		pgx.StrictNamedArgs{"id": k.ID, "sealed": sealed, "key": k.Key})
	return err
}

func putOpened(ctx context.Context, q pg.Querier, k vaultKey) error {
	_, err := pg.Exec(ctx, q, `
		insert into socle.opened_vault_keys (id, key) values (@id, @key) on conflict (id) do nothing`,
		pgx.StrictNamedArgs{"id": k.ID, "key": k.Key})
	return err
}
