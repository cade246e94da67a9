package gateway

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// Settings are a project's settings, in parts by interface.
type Settings struct {
	Status     string            // active, paused or deleted
	PublicKeys []json.RawMessage // the project's own keys for tokens, as JSON Web Keys
	Rest       platform.RestSettings
	EndUsers   EndUserSettings
}

// EndUserSettings are a project's end-user settings, as package enduser stores them.
type EndUserSettings struct {
	Settings      json.RawMessage // members that differ from the defaults
	Secrets       []byte          // sealed; nil: none
	KeyGeneration int             // counts rotations for the key that signs access tokens
}

// readSettings returns a project's [Settings] as a JSON object, in one round trip. The text is
// equal while the settings are unchanged. It fails with NotFound unless the project is active,
// paused or deleted.
func readSettings(ctx context.Context, db *platform.DB, project uuid.UUID) (string, error) {
	return pg.Value[string](ctx, db.Querier(), `
		select json_build_object('status', p.status,
			'publicKeys', coalesce((select json_agg(k.jwk order by k.uuid)
				from platform.project_jwt_keys k where k.project_uuid = p.uuid), '[]'),
			'rest', json_build_object('schemas', p.rest_schemas, 'maxRows', p.rest_max_rows,
				'aggregates', p.rest_aggregates, 'plan', p.rest_plan, 'txEnd', p.rest_tx_end,
				'anonTimeoutMs', p.rest_anon_timeout_ms, 'authenticatedTimeoutMs', p.rest_authenticated_timeout_ms,
				'serviceRoleTimeoutMs', p.rest_service_role_timeout_ms, 'readReplica', p.rest_read_replica),
			'endUsers', json_build_object('settings', coalesce(a.settings, '{}'),
				'secrets', encode(a.secrets, 'base64'), 'keyGeneration', coalesce(a.key_generation, 1)))::text
		from platform.projects p left join platform.auth_settings a on a.project_uuid = p.uuid
		where p.uuid = @project and p.status in ('active', 'paused', 'deleted')`,
		pgx.StrictNamedArgs{"project": project})
}
