package job

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// dropStrays drops orphaned copies: databases of restores and proofs without a job. A copy can
// appear after its job has failed, since PostgreSQL finishes a CREATE DATABASE whose client is
// gone.
func (q *Queue) dropStrays(ctx context.Context) error {
	names, err := pg.Values[string](ctx, q.Pool,
		`select datname::text from pg_database where datname ~ '^socle_[0-9a-f]{32}_(proof|asked|new)_'`)
	if err != nil || len(names) == 0 {
		return err
	}

	projects := make([]uuid.UUID, len(names))
	for i, name := range names {
		projects[i], _ = q.Lifecycle.Registry.ProjectOf(name)
	}

	strays, err := pg.Values[string](ctx, q.Pool, `
		select d.name
		from (
			select name, project, right(name, 16) as half -- of the UUID that the name ends with, see tenant.Copy
			from unnest(@names::text[], @projects::uuid[]) as copies (name, project)
		) d
		join platform.projects p on p.uuid = d.project
		where not exists (
			select from river.river_job j
			where j.kind = @proof and j.state in ('available', 'pending', 'retryable', 'scheduled', 'running')
			  and right(replace(j.args ->> 'backup', '-', ''), 16) = d.half)
		and not exists (
			select from platform.restores r where r.status in ('pending', 'running') and right(replace(r.uuid::text, '-', ''), 16) = d.half)`,
		pgx.StrictNamedArgs{"names": names, "projects": projects, "proof": proveArgs{}.Kind()})

	errs := []error{err}
	for _, name := range strays {
		errs = append(errs, q.Lifecycle.Registry.DropStray(ctx, name))
	}

	return errors.Join(errs...)
}

// strayBatch is the number of contents checked per statement.
const strayBatch = 1000

// removeStrayBackups removes orphans in the backup folder of a project that are older than age:
// leftovers of failed backups, and contents that no backup needs. A server killed during the
// removal leaves them behind. It returns the number of removed blobs.
//
// It removes nothing if the folder has a backup of any age that the platform database does not
// know. The database was then restored to an earlier time, and that backup needs contents that are
// unknown too.
func (q *Queue) removeStrayBackups(ctx context.Context, project uuid.UUID, age time.Duration) (int, error) {
	failed, err := q.Store.FailedBackups(ctx, project)
	if err != nil {
		return 0, err
	}

	folder := "projects/" + project.String() + "/backups/"
	var remove, contents []string
	for e, err := range q.Lifecycle.Blobs.List(ctx, strings.TrimSuffix(folder, "/")) {
		if err != nil {
			return 0, err
		}

		old, name := time.Since(e.Modified) >= age, strings.TrimPrefix(e.Key, folder)
		if sum, ok := strings.CutPrefix(name, "content/"); ok {
			if old {
				contents = append(contents, sum)
			}
			continue
		}

		id, err := uuid.Parse(strings.TrimSuffix(strings.TrimSuffix(name, ".dump"), ".manifest"))
		if err != nil {
			continue // not a backup's
		}

		over, known := failed[id]
		if !known {
			return 0, nil
		}

		if over && old {
			remove = append(remove, e.Key)
		}
	}

	for i, key := range remove {
		if err := q.Lifecycle.Blobs.Delete(ctx, key); err != nil {
			return i, err
		}
	}

	n, err := q.removeStrayContents(ctx, project, folder+"content/", contents)
	return len(remove) + n, err
}

// removeStrayContents removes the contents, given by checksum, that no backup of the project needs.
func (q *Queue) removeStrayContents(
	ctx context.Context, project uuid.UUID, folder string, contents []string,
) (removed int, err error) {
	for len(contents) > 0 {
		var sums [][]byte
		for _, c := range contents[:min(strayBatch, len(contents))] {
			if sum, bad := hex.DecodeString(c); bad == nil {
				sums = append(sums, sum)
			}
		}

		contents = contents[min(strayBatch, len(contents)):]

		if sums, err = q.Store.UnneededContents(ctx, project, sums); err != nil {
			return removed, err
		}

		for _, sum := range sums {
			err := q.Store.ForgetStrayContent(ctx, project, sum, func() error {
				removed++
				return q.Lifecycle.Blobs.Delete(ctx, folder+hex.EncodeToString(sum))
			})
			if err != nil {
				return removed, err
			}
		}
	}

	return removed, nil
}
