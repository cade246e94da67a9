package appkey

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
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

// CreateS3Key creates a key for the S3 protocol. It fails as [CreateProjectKey] does.
func CreateS3Key(ctx context.Context, db *platform.DB, project, user uuid.UUID, name string) (S3Key, error) {
	name, err := trimName(name)
	if err != nil {
		return S3Key{}, err
	}

	return create(ctx, db, project, creation[S3Key]{
		insert: func(q pg.Querier, id uuid.UUID) (S3Key, error) {
			return pg.One[S3Key](ctx, q, `
				insert into platform.s3_keys (uuid, project_uuid, name, created_by)
				select @id, @project, @name, @user
				where (select count(*) from platform.s3_keys where project_uuid = @project) < @max::bigint
				returning`+s3KeyColumns,
				pgx.StrictNamedArgs{"id": id, "project": project, "name": name, "user": user, "max": maxS3Keys})
		},
		constraint: "s3_keys_name_key",
		conflict: fault.OnField(fault.Conflict, "name", "already_exists",
			"is taken by another S3 key of the project"),
		limit: limitReached(maxS3Keys, "S3 keys"),
	})
}

// ListS3Keys returns a page of a project's S3 keys and the total count.
func ListS3Keys(ctx context.Context, db *platform.DB, project uuid.UUID, page pg.Page) ([]S3Key, int64, error) {
	return pg.List[S3Key](ctx, db.Querier(), pg.Listing{
		Columns: s3KeyColumns,
		From:    `platform.s3_keys where project_uuid = @project`,
		Sorts:   map[string]string{"name": "name", "createdAt": "created_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": project})
}

// DeleteS3Key revokes a key. All servers reject it within seconds. It fails with NotFound for an
// unknown key.
func DeleteS3Key(ctx context.Context, db *platform.DB, project, id uuid.UUID) (S3Key, error) {
	return pg.InTxValue(ctx, db.InTx, func(tx *platform.DB) (S3Key, error) {
		return pg.One[S3Key](ctx, tx.Querier(), `
		delete from platform.s3_keys where uuid = @id and project_uuid = @project
		returning`+s3KeyColumns, pgx.StrictNamedArgs{"id": id, "project": project})
	})
}

// FindS3Key fails with NotFound unless id is an S3 key in the project.
func FindS3Key(ctx context.Context, db *platform.DB, project, id uuid.UUID) error {
	_, err := pg.Value[bool](ctx, db.Querier(),
		`select true from platform.s3_keys where uuid = @id and project_uuid = @project`,
		pgx.StrictNamedArgs{"id": id, "project": project})
	return err
}
