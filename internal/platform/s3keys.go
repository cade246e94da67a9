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
)

// S3Key is a key for a project's files over the S3 protocol. Its secret is derived, see
// [projectdb.Registry.S3Secret], and shown once, on creation.
type S3Key struct {
	UUID        uuid.UUID `json:"uuid" format:"uuid"`
	ProjectUUID uuid.UUID `json:"projectUuid" format:"uuid"`
	Name        string    `json:"name"`
	AccessKeyID string    `json:"accessKeyId" doc:"The access key, which is no secret."`
	CreatedAt   time.Time `json:"createdAt"`
	CreatedBy   uuid.UUID `json:"createdBy" format:"uuid"`
}

const (
	s3KeyColumns = ` uuid, project_uuid, name, replace(uuid::text, '-', '') as access_key_id, created_at, created_by `
	maxS3Keys    = 100
)

// CreateS3Key creates a key for the S3 protocol. It fails as [Store.CreateProjectKey] does.
func (s *Store) CreateS3Key(ctx context.Context, project, user uuid.UUID, name string) (S3Key, error) {
	if name = strings.TrimSpace(name); name == "" {
		return S3Key{}, fault.OnField(fault.Unprocessable, "name", "required", "must not be blank")
	}

	id, err := uuid.NewV7()
	if err != nil {
		return S3Key{}, err
	}

	created, err := pg.InTxValue(ctx, s.InTx, func(tx *Store) (S3Key, error) {
		audit.CreatedUUID(ctx, id)
		if err := tx.db.LockProject(ctx, project); err != nil {
			return S3Key{}, err
		}

		return pg.One[S3Key](ctx, tx.q, `
			insert into platform.s3_keys (uuid, project_uuid, name, created_by)
			select @id, @project, @name, @user
			where (select count(*) from platform.s3_keys where project_uuid = @project) < @max::bigint
			returning`+s3KeyColumns,
			pgx.StrictNamedArgs{"id": id, "project": project, "name": name, "user": user, "max": maxS3Keys})
	})
	switch {
	case pg.Violates(err, "s3_keys_name_key"):
		return created, fault.OnField(fault.Conflict, "name", "already_exists",
			"is taken by another S3 key of the project").WithCause(err)
	case fault.Is(err, fault.NotFound):
		return created, fault.New(fault.Unprocessable, "the project has reached its limit of %d S3 keys", maxS3Keys).
			WithCode("quota_exceeded")
	}

	return created, err
}

// ListS3Keys returns a page of the S3 keys of a project and the total count.
func (s *Store) ListS3Keys(ctx context.Context, project uuid.UUID, page pg.Page) ([]S3Key, int64, error) {
	return pg.List[S3Key](ctx, s.q, pg.Listing{
		Columns: s3KeyColumns,
		From:    `platform.s3_keys where project_uuid = @project`,
		Sorts:   map[string]string{"name": "name", "createdAt": "created_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": project})
}

// DeleteS3Key revokes a key. All servers reject it within seconds. It fails with NotFound for an
// unknown key.
func (s *Store) DeleteS3Key(ctx context.Context, project, id uuid.UUID) (S3Key, error) {
	return pg.InTxValue(ctx, s.InTx, func(tx *Store) (S3Key, error) {
		return pg.One[S3Key](ctx, tx.q, `
		delete from platform.s3_keys where uuid = @id and project_uuid = @project
		returning`+s3KeyColumns, pgx.StrictNamedArgs{"id": id, "project": project})
	})
}

// HasS3Key fails with NotFound unless id is an S3 key of the project.
func (s *Store) HasS3Key(ctx context.Context, project, id uuid.UUID) error {
	_, err := pg.Value[bool](ctx, s.q,
		`select true from platform.s3_keys where uuid = @id and project_uuid = @project`,
		pgx.StrictNamedArgs{"id": id, "project": project})
	return err
}
