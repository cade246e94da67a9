package backup

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

// Backoff of a backup that collides with other transactions.
const (
	retryFor   = 30 * time.Minute // from the first attempt to the last
	retryFirst = 5 * time.Second
	retryMost  = 2 * time.Minute
)

// Later asks the queue to run a task again after After. Meanwhile a backup holds no locks, and a
// proof has no result.
type Later struct {
	After time.Duration // 0: use the queue's retry policy, then the next periodic run
	Err   error
}

// Error returns the delay and the cause.
func (l *Later) Error() string { return fmt.Sprintf("again after %v: %v", l.After, l.Err) }

// Unwrap returns the cause.
func (l *Later) Unwrap() error { return l.Err }

// collisionError reports that other transactions prevented a consistent dump. A retry may succeed.
type collisionError struct {
	object  string // contended object, in words for the user
	waiting string // clause after object: what the backup waits for
	failed  string // clause after object: why the backup failed in the end
	ofDump  bool   // reported by pg_dump, although all tables were locked
	err     error
}

// Error returns the object, the collision and the cause.
func (c *collisionError) Error() string { return c.object + " " + c.failed + ": " + c.err.Error() }

// Unwrap returns the cause.
func (c *collisionError) Unwrap() error { return c.err }

func lockedAt(object string, err error) *collisionError {
	return &collisionError{object: object, waiting: ", which another transaction has locked",
		failed: "was locked by another transaction", err: err}
}

func replacedAt(object string, err error) *collisionError {
	return &collisionError{object: object, waiting: ", which was changed while the backup was made",
		failed: "was changed while the backup was made, at each try", err: err}
}

// collisionOf converts an error of work on object to a *collisionError if its SQLSTATE indicates a
// collision, and returns it unchanged otherwise.
func collisionOf(object string, err error) error {
	if _, done := errors.AsType[*collisionError](err); done || err == nil {
		return err
	}

	switch pg.State(err) {
	case "55P03": // lock_not_available
		return lockedAt(object, err)
	case "42P01", "3F000", "42809", "42501", "55000", "XX000":
		// undefined_table, invalid_schema_name, wrong_object_type, insufficient_privilege (of a
		// view in a table's place), object_not_in_prerequisite_state, internal_error (a catalog
		// entry is gone)
		return replacedAt(object, err)
	case "57P01": // admin_shutdown
		return replacedAt("the project's database", err)
	}

	return err
}

// dumpCollision is collisionOf for an error of pg_dump, whose text it matches. PostgreSQL's
// messages are in English: tenant.setRoles sets lc_messages.
func dumpCollision(err error) error {
	if _, exited := errors.AsType[*exec.ExitError](err); !exited {
		return err
	}

	met := readCollision(err)
	if met == nil {
		return err
	}

	met.ofDump = true
	return met
}

func readCollision(err error) *collisionError {
	text := err.Error()
	says := func(some ...string) bool {
		return slices.ContainsFunc(some, func(said string) bool { return strings.Contains(text, said) })
	}
	switch {
	case says("canceling statement due to statement timeout", "canceling statement due to lock timeout"):
		if found := lockStatement.FindStringSubmatch(text); found != nil {
			return lockedAt("the table "+found[1], err)
		}
		return lockedAt("a table", err)
	case says("terminating connection due to administrator command"):
		return replacedAt("the project's database", err)
	case says("does not exist", "could not open relation with OID", "cache lookup failed", "access to non-system",
		"is not a table"):
		object := "an object of the database"
		if found := serverError.FindStringSubmatch(text); found != nil {
			object += " (" + found[1] + ")"
		}

		return replacedAt(object, err)
	}

	return nil
}

var (
	lockStatement = regexp.MustCompile(`LOCK TABLE (?:ONLY )?([^,\n]{1,200}) IN ACCESS SHARE MODE`)
	serverError   = regexp.MustCompile(`ERROR:  ([^\n]{1,200})`)
)

// postpone reschedules a backup that collided with other transactions. It fails the backup with
// Conflict after retryFor.
func (m *Maker) postpone(ctx context.Context, b platform.Backup, met *collisionError) error {
	tried, err := m.Store.PostponeBackup(ctx, b.UUID, met.object+met.waiting)
	if err != nil {
		return errors.Join(met, err)
	}

	if tried > retryFor {
		return fault.New(fault.Conflict, "%s %s, for %d minutes", met.object, met.failed, int(retryFor.Minutes())).
			Because(met)
	}

	return &Later{min(max(tried/2, retryFirst), retryMost), met}
}
