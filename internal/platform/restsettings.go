package platform

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
)

// RestSettings holds the settings for a project's rows API.
type RestSettings struct {
	Schemas     []string `json:"schemas" doc:"Schemas that the rows API shows; the first is the one of requests that name none."`
	MaxRows     int      `json:"maxRows" doc:"Maximum number of rows of a response, and of each embedded list. 0: no limit."`
	Aggregates  bool     `json:"aggregates" doc:"Whether select may contain aggregates."`
	Plan        bool     `json:"plan" doc:"Whether requests may ask for the plan of their statement."`
	ReadReplica bool     `json:"readReplica" doc:"Whether reads go to a read replica of PostgreSQL, if there is a fresh one and the request does not prefer the primary."`
	TxEnd       string   `json:"txEnd" enum:"commit,commit-allow-override,rollback,rollback-allow-override" doc:"How transactions end, and whether requests may choose by Prefer: tx."`

	// Statement timeouts by role, in milliseconds.
	AnonTimeoutMS          int `json:"anonTimeoutMs" doc:"Timeout of a statement of anon in milliseconds. 0: only the limit of 30 seconds."`
	AuthenticatedTimeoutMS int `json:"authenticatedTimeoutMs" doc:"Timeout of a statement of authenticated in milliseconds. 0: only the limit of 30 seconds."`
	ServiceRoleTimeoutMS   int `json:"serviceRoleTimeoutMs" doc:"Timeout of a statement of service_role in milliseconds. 0: only the limit of 30 seconds."`
}

// RestSettingsUpdate changes settings for a project's rows API. Nil fields are left unchanged.
type RestSettingsUpdate struct {
	Schemas          []string
	MaxRows          *int
	Aggregates, Plan *bool
	ReadReplica      *bool
	TxEnd            *string

	AnonTimeoutMS, AuthenticatedTimeoutMS, ServiceRoleTimeoutMS *int
}

const restColumns = ` rest_schemas as schemas, rest_max_rows as max_rows, rest_aggregates as aggregates,
	rest_plan as plan, rest_read_replica as read_replica, rest_tx_end as tx_end, rest_anon_timeout_ms as anon_timeout_ms,
	rest_authenticated_timeout_ms as authenticated_timeout_ms, rest_service_role_timeout_ms as service_role_timeout_ms `

// maxSchemaName is PostgreSQL's limit for names, in bytes.
const maxSchemaName = 63

// GetRestSettings returns the settings for a project's rows API. It fails with NotFound for an
// unknown project.
func (s *Store) GetRestSettings(ctx context.Context, project uuid.UUID) (RestSettings, error) {
	return pg.One[RestSettings](ctx, s.q,
		`select `+restColumns+` from platform.projects where uuid = @project and status = 'active'`,
		pgx.StrictNamedArgs{"project": project})
}

// UpdateRestSettings changes the settings for a project's rows API. All servers apply them within
// seconds. A listed schema need not exist yet. It fails with Unprocessable if a schema belongs to
// PostgreSQL or the platform or is listed twice, or nothing is to change, and with NotFound for an
// unknown project.
func (s *Store) UpdateRestSettings(
	ctx context.Context, project, user uuid.UUID, u RestSettingsUpdate,
) (RestSettings, error) {
	if u.Schemas == nil && u.MaxRows == nil && u.Aggregates == nil && u.Plan == nil &&
		u.ReadReplica == nil && u.TxEnd == nil && u.AnonTimeoutMS == nil &&
		u.AuthenticatedTimeoutMS == nil && u.ServiceRoleTimeoutMS == nil {
		return RestSettings{}, fault.NothingToChange()
	}

	if err := checkSchemas(u.Schemas); err != nil {
		return RestSettings{}, err
	}

	return pg.InTxValue(ctx, s.InTx, func(tx *Store) (RestSettings, error) {
		return pg.One[RestSettings](ctx, tx.q, `
			update platform.projects set
				rest_schemas = coalesce(@schemas::text[], rest_schemas),
				rest_max_rows = coalesce(@max_rows, rest_max_rows),
				rest_aggregates = coalesce(@aggregates, rest_aggregates),
				rest_plan = coalesce(@plan, rest_plan),
				rest_read_replica = coalesce(@read_replica, rest_read_replica),
				rest_tx_end = coalesce(@tx_end, rest_tx_end),
				rest_anon_timeout_ms = coalesce(@anon, rest_anon_timeout_ms),
				rest_authenticated_timeout_ms = coalesce(@authenticated, rest_authenticated_timeout_ms),
				rest_service_role_timeout_ms = coalesce(@service_role, rest_service_role_timeout_ms),
				updated_by = @user, updated_at = now()
			where uuid = @project and status = 'active'
			returning `+restColumns, pgx.StrictNamedArgs{
			"project": project, "user": user, "schemas": u.Schemas, "max_rows": u.MaxRows, "aggregates": u.Aggregates,
			"plan": u.Plan, "read_replica": u.ReadReplica, "tx_end": u.TxEnd, "anon": u.AnonTimeoutMS,
			"authenticated": u.AuthenticatedTimeoutMS, "service_role": u.ServiceRoleTimeoutMS,
		})
	})
}

// checkSchemas fails with Unprocessable for a schema that the rows API can't expose.
func checkSchemas(names []string) error {
	for i, name := range names {
		switch {
		case name == "" || len(name) > maxSchemaName || strings.ContainsFunc(name, func(c rune) bool {
			return c < ' ' || c == 0x7f || c == ','
		}):
			return fault.OnField(fault.Unprocessable, "schemas", "invalid_name",
				"must be names of at most %d bytes, without commas and control characters", maxSchemaName)
		case namespace.IsReserved(name) || name == "vault":
			return fault.OnField(fault.Unprocessable, "schemas", "reserved",
				"must be schemas of the project: %s is reserved", name)
		case slices.Contains(names[:i], name):
			return fault.OnField(fault.Unprocessable, "schemas", "duplicate", "must name each schema once")
		}
	}

	return nil
}
