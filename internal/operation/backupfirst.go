package operation

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/backup"
)

// A Destructive operation deletes an entity with its contents: a table, column, form, container or
// folder, or anything by SQL. If the project has backupBeforeDestructive, a backup must complete
// first. A single file, response or row does not count; neither does an index, policy or function,
// which holds no data.

// Time that a request waits for its backup.
const (
	defaultBackupWait = 20 * time.Second
	// Together with a long operation's timeout, it stays below the connection's idle limit.
	maxBackupWait = 25 * time.Second
)

const destructiveNotes = "If the project has `backupBeforeDestructive`, a backup is made first. The request waits " +
	"for it for up to 20 seconds, or for the time in the header `Prefer: wait=5` (at most 25). If the backup fails " +
	"(`backup_failed`) or takes longer (`backup_under_way`: repeat the request within an hour after the backup " +
	"completes), the response is 409 and nothing changes."

// backUpFirst runs the operation after a backup has completed. The wait does not count against the
// operation's timeout.
func (q *request) backUpFirst(ctx context.Context, next step) (any, error) {
	if !Caller(ctx).BackupFirst || !q.op.Destructive.holds(q.input.Interface()) {
		return next(ctx)
	}

	if err := q.checkTarget(ctx); err != nil {
		return nil, err
	}

	request, err := q.requestDigest(ctx, q.http, q.body)
	if err != nil {
		return nil, err
	}

	// ctx ends with the operation's timeout; the wait ends when the client disconnects.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(q.http.Context(), cancel)()

	timer := time.NewTimer(backupWaitOf(q.http))
	defer timer.Stop()

	if err := q.config.AwaitBackup(ctx, backup.DestructiveRequest{
		Project:   q.project.UUID,
		User:      Caller(ctx).User,
		Operation: q.op.ID,
		Request:   request,
	}, timer.C); err != nil {
		return nil, err
	}

	ctx, cancel = context.WithTimeout(ctx, q.op.Timeout)
	defer cancel()

	return next(ctx)
}

// checkTarget fails if the target does not exist or does not match If-Match: then no backup is
// needed. Some operations check this only themselves.
func (q *request) checkTarget(ctx context.Context) error {
	if q.reader == nil {
		return nil
	}

	if _, err := q.reader.etag(ctx, q.http, q.project); err != nil {
		return err
	}

	_, err := q.ifMatch(ctx, func(context.Context) (any, error) { return nil, nil })
	return err
}

// requestDigest returns a digest that identifies the caller's request when they repeat it.
func (rt *route) requestDigest(ctx context.Context, r *http.Request, body any) ([]byte, error) {
	fingerprint, err := fingerprintOf(r, body)
	sum := sha256.Sum256(append(rt.requestKey(ctx, r.Method), fingerprint...))

	return sum[:], err
}

// extendWriteDeadline extends the write deadline for a response that follows a backup.
func (rt *route) extendWriteDeadline(w http.ResponseWriter) {
	err := http.NewResponseController(w).
		SetWriteDeadline(time.Now().Add(maxBackupWait + rt.op.Timeout + DefaultTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		rt.config.Log.Warn("extend write deadline", "error", err)
	}
}

// backupWaitOf returns how long the request waits for a backup, from Prefer: wait=N (RFC 7240), or
// the default.
func backupWaitOf(r *http.Request) time.Duration {
	for _, preference := range strings.Split(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
		if seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 16); err == nil &&
			strings.EqualFold(name, "wait") {
			return min(time.Duration(seconds)*time.Second, maxBackupWait)
		}
	}

	return defaultBackupWait
}
