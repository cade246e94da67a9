package backup

import (
	"context"
	"errors"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pgdump"
)

// backupFailure explains to the user why a backup failed.
func backupFailure(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return serverStopped
	}
	if e := fault.Of(err); e.Kind != fault.Internal {
		return e.Detail
	}
	if errors.Is(err, archive.ErrDamaged) || errors.Is(err, pgdump.ErrTOC) {
		return "the dump is incomplete"
	}
	if why := programFailure(err); why != "" {
		return "the dump failed: " + why
	}

	return "the dump failed; see the server's log"
}

// restoreFailure explains to the user why a restore failed.
func restoreFailure(ctx context.Context, err error) string {
	switch e := fault.Of(err); {
	case ctx.Err() != nil:
		return serverStopped
	case errors.Is(err, archive.ErrDamaged), errors.Is(err, pgdump.ErrTOC):
		return "the backup is damaged; nothing was restored"
	case e.Kind != fault.Internal:
		return e.Detail
	case programFailure(err) != "":
		return "the restore failed: " + programFailure(err)
	}

	return "the restore failed; see the server's log"
}

// programFailure describes a defect of the installed pg_dump or pg_restore to the user. It returns
// "" if the error has another cause.
func programFailure(err error) string {
	switch {
	case errors.Is(err, pgtool.ErrNotExecutable):
		return "PostgreSQL's programs cannot run on Socle's server"
	case errors.Is(err, pgtool.ErrOldProgram):
		return "PostgreSQL's programs on Socle's server are older than the database server"
	case errors.Is(err, pgtool.ErrUnexpectedOutput):
		return "a PostgreSQL program reported a problem; see the server's log"
	}

	return ""
}
