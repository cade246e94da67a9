package platform

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// RestSettings holds the settings of a project's rows API.
type RestSettings struct {
	Schemas []string `json:"schemas" doc:"Schemas that the rows API shows; the first is the one of requests that name none."`
}

// platformSchemas are the schemas of a project database that belong to the platform. The rows API
// never exposes them.
var platformSchemas = []string{"auth", "storage", "forms", "realtime", "socle", "information_schema"}

// maxSchemaName is PostgreSQL's limit for names, in bytes.
const maxSchemaName = 63

// GetRestSettings returns the settings of a project's rows API. It fails with NotFound for an
// unknown project.
func (s *Store) GetRestSettings(ctx context.Context, project uuid.UUID) (RestSettings, error) {
	return pg.One[RestSettings](ctx, s.q,
		`select rest_schemas as schemas from platform.projects where uuid = @project and status = 'active'`,
		pgx.StrictNamedArgs{"project": project})
}

// UpdateRestSettings changes the settings of a project's rows API. All servers apply them within
// seconds. A listed schema need not exist yet. It fails with Unprocessable if a schema belongs to
// PostgreSQL or the platform or is listed twice, and with NotFound for an unknown project.
func (s *Store) UpdateRestSettings(ctx context.Context, project, user uuid.UUID, r RestSettings) (RestSettings, error) {
	for i, name := range r.Schemas {
		switch {
		case name == "" || len(name) > maxSchemaName || strings.ContainsFunc(name, func(c rune) bool {
			return c < ' ' || c == 0x7f || c == ','
		}):
			return r, fault.OnField(fault.Unprocessable, "schemas", "invalid_name",
				"must be names of at most %d bytes, without commas and control characters", maxSchemaName)
		case strings.HasPrefix(name, "pg_") || slices.Contains(platformSchemas, name):
			return r, fault.OnField(fault.Unprocessable, "schemas", "reserved",
				"must be schemas of the project: %s is reserved", name)
		case slices.Contains(r.Schemas[:i], name):
			return r, fault.OnField(fault.Unprocessable, "schemas", "duplicate", "must name each schema once")
		}
	}

	return pg.InTxValue(ctx, s.InTx, func(tx *Store) (RestSettings, error) {
		return pg.One[RestSettings](ctx, tx.q, `
			update platform.projects set rest_schemas = @schemas::text[], updated_by = @user, updated_at = now()
			where uuid = @project and status = 'active'
			returning rest_schemas as schemas`, pgx.StrictNamedArgs{
			"project": project, "user": user, "schemas": r.Schemas,
		})
	})
}

// RestConfig is the configuration that a server needs to serve a project's rows.
type RestConfig struct {
	Status  string // active, paused or deleted
	Schemas []string
	Keys    []json.RawMessage // public keys for tokens, as JSON Web Keys
}

// RestConfig returns a project's [RestConfig] as a JSON object. The text is equal while the
// configuration is unchanged. It fails with NotFound unless the project is active, paused or
// deleted.
func (s *Store) RestConfig(ctx context.Context, project uuid.UUID) (string, error) {
	return pg.Value[string](ctx, s.q, `
		select json_build_object('status', p.status, 'schemas', p.rest_schemas, 'keys', coalesce(
			(select json_agg(k.jwk order by k.uuid) from platform.project_jwt_keys k where k.project_uuid = p.uuid), '[]'))::text
		from platform.projects p where p.uuid = @project and p.status in ('active', 'paused', 'deleted')`,
		pgx.StrictNamedArgs{"project": project})
}
