package platform

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// ProjectKey is a key for the rows API of a project. Its text is shown once, on creation.
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
func (s *Store) CreateProjectKey(
	ctx context.Context, project, user uuid.UUID, name, kind string,
) (ProjectKey, string, error) {
	if name = strings.TrimSpace(name); name == "" {
		return ProjectKey{}, "", fault.OnField(fault.Unprocessable, "name", "required", "must not be blank")
	}

	id, err := uuid.NewV7()
	if err != nil {
		return ProjectKey{}, "", err
	}

	prefix := token.PublishablePrefix
	if kind == "secret" {
		prefix = token.SecretPrefix
	}

	key := token.NewAPIKey(prefix)
	created, err := pg.InTxValue(ctx, s.InTx, func(tx *Store) (ProjectKey, error) {
		audit.CreatedUUID(ctx, id)
		if err := tx.db.LockProject(ctx, project); err != nil {
			return ProjectKey{}, err
		}

		return pg.One[ProjectKey](ctx, tx.q, `
			insert into platform.project_keys (uuid, project_uuid, name, kind, hint, hash, created_by)
			select @id, @project, @name, @kind, @hint, @hash, @user
			where (select count(*) from platform.project_keys where project_uuid = @project) < @max::bigint
			returning`+projectKeyColumns,
			pgx.StrictNamedArgs{"id": id, "project": project, "name": name, "kind": kind,
				"hint": token.Hint(prefix, key), "hash": token.Hash(key), "user": user, "max": maxProjectKeys})
	})
	switch {
	case pg.Violates(err, "project_keys_name_key"):
		return created, "", fault.OnField(fault.Conflict, "name", "already_exists",
			"is taken by another key of the project").WithCause(err)
	case fault.Is(err, fault.NotFound):
		return created, "", fault.New(fault.Unprocessable, "the project has reached its limit of %d keys",
			maxProjectKeys).WithCode("quota_exceeded")
	}

	return created, key, err
}

// ListProjectKeys returns a page of the keys of a project and the total count.
func (s *Store) ListProjectKeys(ctx context.Context, project uuid.UUID, page pg.Page) ([]ProjectKey, int64, error) {
	return pg.List[ProjectKey](ctx, s.q, pg.Listing{
		Columns: projectKeyColumns,
		From:    `platform.project_keys where project_uuid = @project`,
		Sorts:   map[string]string{"name": "name", "kind": "kind", "createdAt": "created_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": project})
}

// DeleteProjectKey revokes a key. All servers reject it within seconds. It fails with NotFound for
// an unknown key.
func (s *Store) DeleteProjectKey(ctx context.Context, project, id uuid.UUID) (ProjectKey, error) {
	return pg.InTxValue(ctx, s.InTx, func(tx *Store) (ProjectKey, error) {
		return pg.One[ProjectKey](ctx, tx.q, `
		delete from platform.project_keys where uuid = @id and project_uuid = @project
		returning`+projectKeyColumns, pgx.StrictNamedArgs{"id": id, "project": project})
	})
}

// KnownKey identifies a key of a project.
type KnownKey struct {
	UUID uuid.UUID
	Kind string // publishable or secret
}

// FindProjectKey returns the row of a key by its text. It fails with NotFound unless it is a key of
// this project, and the project is active, paused or deleted.
func (s *Store) FindProjectKey(ctx context.Context, project uuid.UUID, key string) (KnownKey, error) {
	return pg.One[KnownKey](ctx, s.q, `
		select k.uuid, k.kind from platform.project_keys k join platform.projects p on p.uuid = k.project_uuid
		where k.hash = @hash and k.project_uuid = @project and p.status in ('active', 'paused', 'deleted')`,
		pgx.StrictNamedArgs{"hash": token.Hash(key), "project": project})
}
