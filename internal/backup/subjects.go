package backup

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// filesOf returns the files from the subject that has them.
func filesOf(subjects []projectdb.Subject) *projectdb.Files {
	for _, s := range subjects {
		if s.Files != nil {
			return s.Files
		}
	}

	return nil
}

// isRestored reports whether a table's rows are restored, as all user tables' are.
func isRestored(subjects []projectdb.Subject, schema, table string) bool {
	return !projectdb.IsPolicyTable(schema, table) && !slices.ContainsFunc(subjects, func(s projectdb.Subject) bool {
		return s.Schema == schema && slices.Contains(s.Restore.Skipped, table)
	})
}

// prepareRows has all subjects prepare their rows in a copy.
func (s *Service) prepareRows(ctx context.Context, tx pgx.Tx) error {
	for _, subject := range s.Subjects {
		if prepare := subject.Restore.Prepare; prepare != nil {
			if err := prepare(ctx, tx); err != nil {
				return err
			}
		}
	}

	return nil
}

// detachRows has all subjects detach their rows in a copy from the backup's project.
func (s *Service) detachRows(ctx context.Context, tx pgx.Tx) error {
	for _, subject := range s.Subjects {
		if detach := subject.Restore.Detach; detach != nil {
			if err := detach(ctx, tx); err != nil {
				return err
			}
		}
	}

	return nil
}

// renewRows gives new UUIDs to rows in a copy whose UUIDs can't be kept, since the platform
// database finds the project by them: all rows in a new project, otherwise those whose UUID another
// project uses.
func (s *Service) renewRows(ctx context.Context, tx pgx.Tx, project uuid.UUID, newProject bool) error {
	for _, subject := range s.Subjects {
		if subject.Restore.UUIDs == nil {
			continue
		}

		rows, err := subject.Restore.UUIDs(ctx, tx)
		if err != nil {
			return err
		}

		if !newProject {
			if rows, err = s.platform.ForeignForms(ctx, project, rows); err != nil {
				return err
			}
		}

		if err := subject.Restore.Renew(ctx, tx, rows); err != nil {
			return err
		}
	}

	return nil
}

// repairImported repairs platform rows from an imported backup, which no trigger has checked: it
// deletes dangling references and recomputes counters. conn is connected to the copy.
func (s *Service) repairImported(ctx context.Context, conn *pgx.Conn) error {
	return pg.InTx(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local session_replication_role = replica"); err != nil {
			return err
		}

		for _, subject := range s.Subjects {
			if repair := subject.Restore.Repair; repair != nil {
				if err := repair(ctx, tx); err != nil {
					return err
				}
			}
		}

		return nil
	})
}

// carryOver copies the project's quotas to a database about to replace the project's, which conn is
// connected to. Quotas are set by administrators and are not restored. It returns the rows by which
// the platform database finds the project.
func (s *Service) carryOver(ctx context.Context, project uuid.UUID, conn *pgx.Conn) ([]uuid.UUID, error) {
	current := s.projects.Open(project).Trusted()
	rows := []uuid.UUID{}
	for _, subject := range s.Subjects {
		if copyQuota := subject.Restore.CopyQuota; copyQuota != nil {
			if err := copyQuota(ctx, current, conn); err != nil {
				return nil, err
			}
		}

		if list := subject.Restore.UUIDs; list != nil {
			some, err := list(ctx, conn)
			if err != nil {
				return nil, err
			}
			rows = append(rows, some...)
		}
	}

	return rows, nil
}
