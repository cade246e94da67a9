package enduser

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// StoredConfig is a [rules.Config] as the platform's database stores it.
type StoredConfig struct {
	Settings   json.RawMessage // members that differ from the defaults; empty: none
	Secrets    []byte          // sealed, see [rules.Secrets.Seal]; empty: none
	Generation int             // signing key number; 0: the first
}

// ParseConfig returns a project's configuration from its stored form. It fails if another install
// sealed the secrets.
func (s *Service) ParseConfig(project uuid.UUID, stored StoredConfig) (rules.Config, error) {
	settings, err := rules.Parse(stored.Settings)
	if err != nil {
		return rules.Config{}, err
	}

	secrets, err := rules.OpenSecrets(s.secretsKey(project), stored.Secrets)
	return rules.Config{Settings: settings, Secrets: secrets, KeyGeneration: max(stored.Generation, 1)}, err
}

// secretsKey returns the key that seals the secrets in a project's settings.
func (s *Service) secretsKey(project uuid.UUID) []byte {
	return s.Projects.EndUserKey(project, "secrets of settings")
}

// LoadConfig returns the configuration for an active project's end users. It fails with NotFound
// for another one.
func (s *Service) LoadConfig(ctx context.Context, project uuid.UUID) (rules.Config, error) {
	row, err := pg.One[StoredConfig](ctx, s.Store.DB().Querier(), `
		select coalesce(a.settings, '{}') as settings, coalesce(a.secrets, '') as secrets,
			coalesce(a.key_generation, 1) as generation
		from platform.projects p left join platform.auth_settings a on a.project_uuid = p.uuid
		where p.uuid = @project and p.status = 'active'`, pgx.StrictNamedArgs{"project": project})
	if err != nil {
		return rules.Config{}, err
	}

	return s.ParseConfig(project, row)
}

// Open returns an active project's directory. It fails with NotFound for another one.
func (s *Service) Open(ctx context.Context, project uuid.UUID) (*Directory, error) {
	c, err := s.LoadConfig(ctx, project)
	if err != nil {
		return nil, err
	}

	return s.Directory(project, c)
}

// UpdateConfig changes the settings and secrets for a project's end users by change. All servers
// apply them within seconds. It fails with Unprocessable on an invalid member.
func (s *Service) UpdateConfig(
	ctx context.Context, project, user uuid.UUID, change func(*rules.Config),
) (rules.Config, error) {
	return pg.InTxValue(ctx, s.Store.DB().InTx, func(tx *platform.DB) (rules.Config, error) {
		c, err := s.lockConfig(ctx, tx, project)
		if err != nil {
			return c, err
		}

		change(&c)
		if err := c.Validate(); err != nil {
			return c, err
		}

		return c, s.saveConfig(ctx, tx, project, user, c)
	})
}

// lockConfig returns a project's configuration, whose row it locks.
func (s *Service) lockConfig(ctx context.Context, tx *platform.DB, project uuid.UUID) (rules.Config, error) {
	if _, err := pg.Exec(ctx, tx.Querier(), `
		insert into platform.auth_settings (project_uuid) values (@project) on conflict do nothing`,
		pgx.StrictNamedArgs{"project": project}); err != nil {
		return rules.Config{}, err
	}

	row, err := pg.One[StoredConfig](ctx, tx.Querier(), `
		select settings, coalesce(secrets, '') as secrets, key_generation as generation
		from platform.auth_settings where project_uuid = @project for update`,
		pgx.StrictNamedArgs{"project": project})
	if err != nil {
		return rules.Config{}, err
	}

	return s.ParseConfig(project, row)
}

func (s *Service) saveConfig(ctx context.Context, tx *platform.DB, project, user uuid.UUID, c rules.Config) error {
	text, err := json.Marshal(c.Settings)
	if err != nil {
		return err
	}

	ciphertext, err := c.Secrets.Seal(s.secretsKey(project))
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx.Querier(), `
		update platform.auth_settings set settings = @settings::jsonb, secrets = @secrets, updated_by = @user,
			updated_at = now()
		where project_uuid = @project`,
		pgx.StrictNamedArgs{"project": project, "settings": string(text), "secrets": ciphertext, "user": user})
	return err
}

// RotateKey replaces the key that signs access tokens. Tokens signed by the previous key stay
// valid, and those by older keys do not. It returns the new key's number.
func (s *Service) RotateKey(ctx context.Context, project, user uuid.UUID) (int, error) {
	return pg.InTxValue(ctx, s.Store.DB().InTx, func(tx *platform.DB) (int, error) {
		return pg.Value[int](ctx, tx.Querier(), `
			insert into platform.auth_settings as a (project_uuid, key_generation, updated_by) values (@project, 2, @user)
			on conflict (project_uuid) do update set key_generation = a.key_generation + 1, updated_by = @user, updated_at = now()
			returning key_generation`, pgx.StrictNamedArgs{"project": project, "user": user})
	})
}
