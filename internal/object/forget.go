package object

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// Forget deletes files in the transaction that deletes the record they belong to. [Discard] removes
// their bytes. Files that do not exist are ignored.
func Forget(ctx context.Context, tx pgx.Tx, files []uuid.UUID) error {
	_, err := pg.Exec(ctx, tx, `
		with gone as (delete from storage.files where uuid = any(@files::uuid[]) returning blob_uuid)
		insert into storage.discarded (blob_uuid) select blob_uuid from gone`,
		pgx.StrictNamedArgs{"files": files})
	return err
}
