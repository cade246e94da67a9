package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"socle/internal/platform"
	"socle/internal/tenant"
)

// An operation that is Destructive takes something away with all that is in it: a table, a column, a form, a container, a folder, or whatever SQL does. If the
// project has backupBeforeDestructive, a backup is completed before it. A single file, response or row is no such thing, and neither is
// what holds nothing: an index, a policy, a function.

// How long a request waits for the backup that has to come first.
const (
	backupWait     = 20 * time.Second // unless it says otherwise
	mostBackupWait = 25 * time.Second // with an operation that is lasting, less than a connection may be silent
)

const destructiveNotes = "If the project has `backupBeforeDestructive`, a backup is made first, for which the request waits for 20 seconds, or as many as the header `Prefer: wait=5` says (25 at most). If it fails or is not completed then, this is 409 and nothing is changed " +
	"(`backup_failed`; `backup_under_way`: ask for the same again within an hour after it is completed)."

// sparing is an input of a destructive operation that may ask for something harmless.
type sparing interface{ spares() bool }

// backUpFirst runs an operation when what it may destroy is in a backup. The wait for that does not count as the operation's own time.
func (rt *route) backUpFirst(
	ctx context.Context, r *http.Request, p *tenant.Project, input, body any, run func(context.Context) (any, error),
) (any, error) {
	if !rt.op.Destructive || !caller(ctx).BackupFirst {
		return run(ctx)
	}
	if s, ok := input.(sparing); ok && s.spares() {
		return run(ctx)
	}

	if err := rt.present(ctx, r, p); err != nil {
		return nil, err
	}

	asked, err := rt.askedFor(ctx, r, body)
	if err != nil {
		return nil, err
	}

	// As long as the client stays: ctx ends when the operation's time is over.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()

	enough := time.NewTimer(waitOf(r))
	defer enough.Stop()

	if err := rt.jobs.BackUpFirst(ctx, platform.Destruction{
		Project:   p.UUID,
		User:      caller(ctx).User,
		Operation: rt.op.ID,
		Request:   asked,
	}, enough.C); err != nil {
		return nil, err
	}

	ctx, cancel = context.WithTimeout(ctx, rt.op.Timeout)
	defer cancel()

	return run(ctx)
}

// present fails if what the operation is about is not there, or not what If-Match names: that needs no backup. Of some, only the operation itself can tell.
func (rt *route) present(ctx context.Context, r *http.Request, p *tenant.Project) error {
	if rt.twin == nil {
		return nil
	}

	if _, err := rt.twin.tag(ctx, r, p); err != nil {
		return err
	}

	_, err := rt.ifMatch(ctx, r, p, func(context.Context) (any, error) { return nil, nil })
	return err
}

// askedFor returns what a request is known by if it comes again: who asks, and for what.
func (rt *route) askedFor(ctx context.Context, r *http.Request, body any) ([]byte, error) {
	said, err := fingerprintOf(r, body)
	sum := sha256.Sum256(append(rt.keyOf(ctx, r.Method), said...))

	return sum[:], err
}

// staying keeps the connection open for an answer that comes after a backup.
func (rt *route) staying(w http.ResponseWriter) {
	err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(mostBackupWait + rt.op.Timeout + usual))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		rt.log.Warn("an answer may come too late", "error", err)
	}
}

// waitOf returns how long a request waits for a backup: what its header Prefer says (RFC 7240), if that is a time.
func waitOf(r *http.Request) time.Duration {
	for _, one := range strings.Split(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
		if seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 16); err == nil &&
			strings.EqualFold(name, "wait") {
			return min(time.Duration(seconds)*time.Second, mostBackupWait)
		}
	}

	return backupWait
}
