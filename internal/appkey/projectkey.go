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

// ProjectKey is an API key of a project. Its text is shown once, on creation.
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

// CreateProjectKey creates a key of kind publishable or secret and returns its row and its text. It
// fails with Conflict if the project has a key of that name, and with Unprocessable if it has the
// allowed number of keys.
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
		taken:      fault.OnField(fault.Conflict, "name", "already_exists", "is taken by another key of the project"),
		limit:      limitReached(maxProjectKeys, "keys"),
	})
	if err != nil {
		return ProjectKey{}, "", err
	}

	return key, text, nil
}

// ListProjectKeys returns a page of the keys of a project and the total count.
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

// Identity identifies the key of a request.
type Identity struct {
	UUID uuid.UUID
	Kind string // Publishable or Secret
}

// FindProjectKey returns the key with this [token.Hash]. It fails with NotFound unless it is a key
// of the project, and the project is active, paused or deleted.
func FindProjectKey(ctx context.Context, db *platform.DB, project uuid.UUID, hash []byte) (Identity, error) {
	return pg.One[Identity](ctx, db.Querier(), `
		select k.uuid, k.kind from platform.project_keys k join platform.projects p on p.uuid = k.project_uuid
		where k.hash = @hash and k.project_uuid = @project and p.status in ('active', 'paused', 'deleted')`,
		pgx.StrictNamedArgs{"hash": hash, "project": project})
}

// FindFormProject returns the project of a form to a respondent with a key of it. It fails with
// NotFound if the form is unknown, its project not active, or the key that of another project.
func FindFormProject(ctx context.Context, db *platform.DB, form uuid.UUID, key string) (uuid.UUID, error) {
	return pg.Value[uuid.UUID](ctx, db.Querier(), `
		select p.uuid from platform.forms f
		join platform.projects p on p.uuid = f.project_uuid
		join platform.project_keys k on k.project_uuid = p.uuid
		where f.uuid = @form and k.hash = @hash and p.status = 'active'`,
		pgx.StrictNamedArgs{"form": form, "hash": token.Hash(key)})
}

// KeyNames returns the names of a project's keys.
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
