package appkey

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/token"
)

// Kinds of project keys.
const (
	Publishable = "publishable"
	Secret      = "secret"
)

// ProjectKey is a project's API key. Its text is shown once, on creation.
type ProjectKey struct {
	UUID        uuid.UUID `json:"uuid"`
	ProjectUUID uuid.UUID `json:"projectUuid"`
	Name        string    `json:"name"`
	Kind        string    `json:"kind" enum:"publishable,secret" doc:"A publishable key acts as the role anon and may be used in browsers. A secret key acts as service_role, which bypasses row security."`
	Hint        string    `json:"hint" doc:"First characters of the key."`
	CreatedAt   time.Time `json:"createdAt"`
	CreatedBy   uuid.UUID `json:"createdBy"`
}

const (
	projectKeyColumns = ` uuid, project_uuid, name, kind, hint, created_at, created_by `
	maxProjectKeys    = 100
)

// CreateProjectKey creates a publishable or secret key and returns its row and its text. It fails
// with Conflict if the project has a key with that name, and with Unprocessable if the project has
// reached its limit.
func CreateProjectKey(
	ctx context.Context, db *platform.DB, project, user uuid.UUID, name, kind string,
) (ProjectKey, string, error) {
	name, err := trimName(name)
	if err != nil {
		return ProjectKey{}, "", err
	}

	prefix := token.PublishablePrefix
	if kind == Secret {
		prefix = token.SecretPrefix
	}

	text := token.NewAPIKey(prefix)
	key, err := create(ctx, db, project, creation[ProjectKey]{
		insert: func(q pg.Querier, id uuid.UUID) (ProjectKey, error) {
			return pg.One[ProjectKey](ctx, q, `
				insert into platform.project_keys (uuid, project_uuid, name, kind, hint, hash, created_by)
				select @id, @project, @name, @kind, @hint, @hash, @user
				where (select count(*) from platform.project_keys where project_uuid = @project) < @max::bigint
				returning`+projectKeyColumns,
				pgx.StrictNamedArgs{"id": id, "project": project, "name": name, "kind": kind,
					"hint": token.Hint(prefix, text), "hash": token.Hash(text), "user": user, "max": maxProjectKeys})
		},
		constraint: "project_keys_name_key",
		conflict:   fault.OnField(fault.Conflict, "name", "already_exists", "is taken by another key of the project"),
		limit:      limitReached(maxProjectKeys, "keys"),
	})
	if err != nil {
		return ProjectKey{}, "", err
	}

	return key, text, nil
}

// ListProjectKeys returns a page of a project's keys and the total count.
func ListProjectKeys(
	ctx context.Context, db *platform.DB, project uuid.UUID, page pg.Page,
) ([]ProjectKey, int64, error) {
	return pg.List[ProjectKey](ctx, db.Querier(), pg.Listing{
		Columns: projectKeyColumns,
		From:    `platform.project_keys where project_uuid = @project`,
		Sorts:   map[string]string{"name": "name", "kind": "kind", "createdAt": "created_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": project})
}

// DeleteProjectKey revokes a key. All servers reject it within seconds. It fails with NotFound for
// an unknown key.
func DeleteProjectKey(ctx context.Context, db *platform.DB, project, id uuid.UUID) (ProjectKey, error) {
	return pg.InTxValue(ctx, db.InTx, func(tx *platform.DB) (ProjectKey, error) {
		return pg.One[ProjectKey](ctx, tx.Querier(), `
		delete from platform.project_keys where uuid = @id and project_uuid = @project
		returning`+projectKeyColumns, pgx.StrictNamedArgs{"id": id, "project": project})
	})
}

// Identity identifies the key that a request presents.
type Identity struct {
	UUID uuid.UUID
	Kind string // Publishable or Secret
}

// FindProjectKey returns the key with this [token.Hash]. It fails with NotFound unless the key
// belongs to the project, and the project is active, paused or deleted.
func FindProjectKey(ctx context.Context, db *platform.DB, project uuid.UUID, hash []byte) (Identity, error) {
	return pg.One[Identity](ctx, db.Querier(), `
		select k.uuid, k.kind from platform.project_keys k join platform.projects p on p.uuid = k.project_uuid
		where k.hash = @hash and k.project_uuid = @project and p.status in ('active', 'paused', 'deleted')`,
		pgx.StrictNamedArgs{"hash": hash, "project": project})
}

// FindFormProject returns a form's project if the key belongs to the same project. It fails with
// NotFound if the form is unknown, its project not active, or the key another project's.
func FindFormProject(ctx context.Context, db *platform.DB, form uuid.UUID, key string) (uuid.UUID, error) {
	return pg.Value[uuid.UUID](ctx, db.Querier(), `
		select p.uuid from platform.forms f
		join platform.projects p on p.uuid = f.project_uuid
		join platform.project_keys k on k.project_uuid = p.uuid
		where f.uuid = @form and k.hash = @hash and p.status = 'active'`,
		pgx.StrictNamedArgs{"form": form, "hash": token.Hash(key)})
}

// KeyNames maps the UUIDs of a project's keys to names.
func KeyNames(ctx context.Context, db *platform.DB, project uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := pg.All[struct {
		UUID uuid.UUID
		Name string
	}](ctx, db.Querier(), `select uuid, name from platform.project_keys where project_uuid = @project`,
		pgx.StrictNamedArgs{"project": project})
	names := make(map[uuid.UUID]string, len(rows))
	for _, r := range rows {
		names[r.UUID] = r.Name
	}

	return names, err
}
