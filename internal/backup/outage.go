package backup

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/queue"
)

// A backup or restore that meets an outage of the database, such as a failover, is not at fault.
// Its worker waits until it can remove what the attempt has left, and makes the task pending again.

const (
	outageTimeout    = 10 * time.Minute // for the database to return while a worker waits
	outageRetryDelay = time.Second
	maxOutageAge     = 24 * time.Hour // from a task's first start to its last
)

// outageTexts are in the messages of pg_dump when its session is lost, or the one with its
// snapshot.
var outageTexts = []string{"FATAL:", "server closed the connection", "connection to server",
	"no connection to the server", "could not receive data from server", "could not send data to server",
	"invalid snapshot identifier"}

// isOutage reports whether a task failed because the database was away, or this server.
func isOutage(ctx context.Context, err error) bool {
	if errors.Is(context.Cause(ctx), queue.ErrCutOff) {
		return true
	}

	return ctx.Err() == nil && isDatabaseAway(err)
}

// isDatabaseAway reports whether an error of a statement, or of a PostgreSQL program, means that
// the database is out of reach or no primary. It does not if a known reason comes first, such as
// the end of a restore's time, which cuts off statements too.
func isDatabaseAway(err error) bool {
	if kind := fault.Of(err).Kind; kind != fault.Unavailable && kind != fault.Internal {
		return false
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok && slices.ContainsFunc(outageTexts, func(text string) bool {
		return strings.Contains(err.Error(), text)
	}) {
		return true
	}

	switch state := pg.State(err); {
	// admin_shutdown, crash_shutdown, cannot_connect_now, too_many_connections,
	// read_only_sql_transaction
	case slices.Contains([]string{"57P01", "57P02", "57P03", "53300", "25006"}, state), strings.HasPrefix(state, "08"):
		return true
	case state != "":
		return false
	}

	return pg.IsAway(err)
}

// awaitOutage calls retry until it reaches the database and the task is free, and returns the
// outcome. It returns err if that takes too long or the server stops.
func (s *Service) awaitOutage(
	ctx context.Context, err error, retry func(context.Context) (outcome, err error),
) error {
	waitCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outageTimeout)
	defer cancel()

	for {
		attemptCtx, cancel := context.WithTimeout(waitCtx, finishTimeout)
		outcome, retryErr := retry(attemptCtx)
		cancel()

		if retryErr == nil {
			return outcome
		}
		if !isDatabaseAway(retryErr) && !errors.Is(retryErr, errMayRun) {
			return errors.Join(err, retryErr)
		}

		select {
		case <-time.After(outageRetryDelay):
		case <-waitCtx.Done():
			return errors.Join(err, retryErr)
		case <-s.Queue.Stopping():
			return errors.Join(err, retryErr)
		}
	}
}

var (
	errMayRun = errors.New("another server may run it")
	errTaken  = errors.New("another server runs it")
)

// interrupted is a task that has met an outage on this server.
type interrupted[T any] struct {
	task[T]
	id    uuid.UUID
	cause error

	mine bool      // this server alone runs the task
	beat time.Time // heartbeat of the server that may run it
}

// retry makes an unfinished task pending again. The outcome is a *[RetryError], or the cause itself
// if the task has been retried for too long. It fails with NotFound if the task has ended, and
// leaves one alone that another server may run. A pending task has left nothing to clear.
func (i *interrupted[T]) retry(ctx context.Context) (outcome, err error) {
	status, age, err := i.hold(ctx)
	if err != nil {
		return nil, err
	}
	if age > maxOutageAge {
		return i.cause, nil
	}

	if status == Running {
		t, err := i.rows.unfinished(ctx, i.id)
		if err != nil {
			return nil, err
		}
		if err := i.clear(ctx, t); err != nil {
			return nil, fmt.Errorf("clear %s %s: %w", i.rows.kind, i.id, err)
		}
	}

	i.mine = false // the answer to what follows may be lost
	if err := i.pend(ctx, i.id, status); err != nil {
		return nil, err
	}

	return &RetryError{min(max(age/2, minRetryDelay), maxRetryDelay), i.cause}, nil
}

// hold keeps other servers from a running task for [HeartbeatTimeout], and returns the task's
// status and the time since its first start. It fails with errMayRun until the heartbeat of a task
// that is not this server's has changed or stopped.
func (i *interrupted[T]) hold(ctx context.Context) (Status, time.Duration, error) {
	status, age, err := i.rows.hold(ctx, i.id, i.mine)
	if err == nil {
		i.mine = status == Running
		return status, age, nil
	}
	if !fault.Is(err, fault.NotFound) {
		i.beat = time.Time{} // it may have been held
		return "", 0, err
	}

	beat, err := i.rows.beat(ctx, i.id)
	switch {
	case err != nil:
		return "", 0, err
	case i.beat.IsZero() || i.beat.Equal(beat):
		i.beat = beat
		return "", 0, errMayRun
	}

	return "", 0, errTaken
}

// pendBackup and pendRestore set a task from a status to pending. They fail with NotFound if it
// does not have that status any more.
func (s *store) pendBackup(ctx context.Context, id uuid.UUID, from Status) error {
	_, err := pg.Value[uuid.UUID](ctx, s.q, `
		update platform.backups
		set status = 'pending', heartbeat_at = now(), waiting_for = 'the database, which was out of reach'
		where uuid = @id and status = @from returning uuid`, pgx.StrictNamedArgs{"id": id, "from": from})
	return err
}

func (s *store) pendRestore(ctx context.Context, id uuid.UUID, from Status) error {
	_, err := pg.Value[uuid.UUID](ctx, s.q, `
		update platform.restores set status = 'pending', heartbeat_at = now()
		where uuid = @id and status = @from returning uuid`, pgx.StrictNamedArgs{"id": id, "from": from})
	return err
}

// enqueueAgain enqueues another job for a pending task. Several are harmless: one starts it.
func (s *Service) enqueueAgain(ctx context.Context, kind string, id, project uuid.UUID) error {
	var args queue.Args = restoreArgs{id, project}
	if kind == "backup" {
		args = backupArgs{id, project}
	}

	_, err := s.Queue.Insert(ctx, args)
	return err
}

// Reasons of tasks that have failed with their server.
const (
	serverStopped = "the server was stopped"
	serverDied    = "the server running it stopped"
	neverStarted  = "the server stopped before starting it"
)

// maxMadeUp is how many backups of a schedule are made up for in a day: a backup may be what ends
// its server.
const maxMadeUp = 3

// makeUp makes a schedule's next backup due at once if one of its backups has failed with its
// server.
func (s *store) makeUp(ctx context.Context, b Backup, reason string) error {
	if !b.Scheduled || !slices.Contains([]string{serverStopped, serverDied, neverStarted}, reason) {
		return nil
	}

	_, err := pg.Exec(ctx, s.q, `
		update platform.backup_schedules s set next_run_at = now()
		where project_uuid = @project and next_run_at > now() and @most >= (
			select count(*) from platform.backups b
			where b.project_uuid = s.project_uuid and b.scheduled and b.status = 'failed'
				and b.created_at > now() - interval '1 day')`,
		pgx.StrictNamedArgs{"project": b.ProjectUUID, "most": maxMadeUp})
	return err
}
