package appkey

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/token"
)

// JWTKey is a project's public key. The project accepts tokens signed by the matching private key.
type JWTKey struct {
	UUID        uuid.UUID       `json:"uuid"`
	ProjectUUID uuid.UUID       `json:"projectUuid"`
	Kid         string          `json:"kid" doc:"Key id, as in the header of tokens."`
	Algorithm   string          `json:"algorithm" enum:"ES256,RS256"`
	JWK         json.RawMessage `json:"jwk" doc:"JSON Web Key, public members only."`
	CreatedAt   time.Time       `json:"createdAt"`
	CreatedBy   uuid.UUID       `json:"createdBy"`
}

const (
	jwtKeyColumns = ` uuid, project_uuid, kid, algorithm, jwk, created_at, created_by `
	maxJWTKeys    = 10 // each may add a verification to every request
)

// CreateJWTKey adds a public key to a project. It fails with Conflict if the project has a key with
// that id, and with Unprocessable if the project has reached its limit.
func CreateJWTKey(
	ctx context.Context, db *platform.DB, project, user uuid.UUID, key token.PublicKey,
) (JWTKey, error) {
	return create(ctx, db, project, creation[JWTKey]{
		insert: func(q pg.Querier, id uuid.UUID) (JWTKey, error) {
			return pg.One[JWTKey](ctx, q, `
				insert into platform.project_jwt_keys (uuid, project_uuid, kid, algorithm, jwk, created_by)
				select @id, @project, @kid, @algorithm, @jwk::json, @user
				where (select count(*) from platform.project_jwt_keys where project_uuid = @project) < @max::bigint
				returning`+jwtKeyColumns,
				pgx.StrictNamedArgs{
					"id": id, "project": project, "kid": key.ID, "algorithm": key.Algorithm, "jwk": string(key.JSON),
					"user": user, "max": maxJWTKeys,
				})
		},
		constraint: "project_jwt_keys_kid_key",
		conflict: fault.OnField(fault.Conflict, "kid", "already_exists",
			"is already the id of another key of the project"),
		limit: limitReached(maxJWTKeys, "public keys"),
	})
}

// ListJWTKeys returns a page of a project's public keys and the total count.
func ListJWTKeys(ctx context.Context, db *platform.DB, project uuid.UUID, page pg.Page) ([]JWTKey, int64, error) {
	return pg.List[JWTKey](ctx, db.Querier(), pg.Listing{
		Columns: jwtKeyColumns,
		From:    `platform.project_jwt_keys where project_uuid = @project`,
		Sorts:   map[string]string{"kid": "kid", "createdAt": "created_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": project})
}

// DeleteJWTKey deletes a public key. All servers reject its tokens within seconds. It fails with
// NotFound for an unknown key.
func DeleteJWTKey(ctx context.Context, db *platform.DB, project, id uuid.UUID) (JWTKey, error) {
	return pg.InTxValue(ctx, db.InTx, func(tx *platform.DB) (JWTKey, error) {
		return pg.One[JWTKey](ctx, tx.Querier(), `
			delete from platform.project_jwt_keys where uuid = @id and project_uuid = @project
			returning`+jwtKeyColumns, pgx.StrictNamedArgs{"id": id, "project": project})
	})
}
