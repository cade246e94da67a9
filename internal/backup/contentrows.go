package backup

import (
	"context"
	"iter"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// lockContents locks a project's backup contents against concurrent changes until the transaction
// ends.
func (s *store) lockContents(ctx context.Context, project uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`select pg_advisory_xact_lock(hashtextextended('backup contents ' || @project::uuid, 0))`,
		pgx.StrictNamedArgs{"project": project})
	return err
}

// addContents records the contents that a backup needs, by SHA-256. sums yields them in batches.
// The backup calls it before it checks whether the contents are stored. It returns how many were
// new for the backup.
func (s *store) addContents(
	ctx context.Context, project, backup uuid.UUID, sums iter.Seq2[[][]byte, error],
) (count int64, err error) {
	err = s.unaudited(ctx, func(tx *store) error {
		if err := tx.lockContents(ctx, project); err != nil {
			return err
		}

		for batch, err := range sums {
			if err != nil {
				return err
			}

			n, err := pg.Exec(ctx, tx.q, `
				insert into platform.backup_contents (backup_uuid, project_uuid, sha256)
				select @backup, @project, unnest(@sums::bytea[])
				on conflict do nothing`,
				pgx.StrictNamedArgs{"backup": backup, "project": project, "sums": batch})
			if err != nil {
				return err
			}

			count += n
		}

		return nil
	})

	return count, err
}

// hasContents reports whether a backup needs all contents with these SHA-256 sums.
func (s *store) hasContents(ctx context.Context, project, backup uuid.UUID, sums [][]byte) (bool, error) {
	return pg.Value[bool](ctx, s.q, `
		select not exists (
			select from unnest(@sums::bytea[]) c
			where not exists (select from platform.backup_contents where backup_uuid = @backup and project_uuid = @project and sha256 = c))`,
		pgx.StrictNamedArgs{"backup": backup, "project": project, "sums": sums})
}

// orphanContents returns the sums that none of the project's backups needs.
func (s *store) orphanContents(ctx context.Context, project uuid.UUID, sums [][]byte) ([][]byte, error) {
	return pg.Values[[]byte](ctx, s.q, `
		select c from unnest(@sums::bytea[]) c
		where not exists (select from platform.backup_contents where project_uuid = @project and sha256 = c)`,
		pgx.StrictNamedArgs{"project": project, "sums": sums})
}

// deleteOrphanContent calls remove if none of the project's backups needs the content.
func (s *store) deleteOrphanContent(ctx context.Context, project uuid.UUID, sum []byte, remove func() error) error {
	return s.unaudited(ctx, func(tx *store) error {
		if err := tx.lockContents(ctx, project); err != nil {
			return err
		}

		isReferenced, err := pg.Value[bool](ctx, tx.q, `
			select exists (select from platform.backup_contents where project_uuid = @project and sha256 = @sum)`,
			pgx.StrictNamedArgs{"project": project, "sum": sum})
		if err != nil || isReferenced {
			return err
		}

		return remove()
	})
}

// deleteContents deletes a backup's content references. It calls remove for each content that none
// of the project's other backups needs.
func (s *store) deleteContents(
	ctx context.Context, project, backup uuid.UUID, remove func(sum []byte) error,
) error {
	return s.unaudited(ctx, func(tx *store) error {
		if err := tx.lockContents(ctx, project); err != nil {
			return err
		}

		args := pgx.StrictNamedArgs{"backup": backup, "project": project}
		sums, err := pg.Values[[]byte](ctx, tx.q, `
			delete from platform.backup_contents c
			where backup_uuid = @backup and project_uuid = @project
			returning case when exists (
				select from platform.backup_contents o
				where o.project_uuid = c.project_uuid and o.sha256 = c.sha256 and o.backup_uuid <> c.backup_uuid) then null else sha256 end`, args)
		if err != nil {
			return err
		}

		for _, sum := range sums {
			if sum == nil { // another backup needs it
				continue
			}
			if err := remove(sum); err != nil {
				return err
			}
		}

		return nil
	})
}
