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
	retryFor   = 30 * time.Minute // from the first try to the last
	retryFirst = 5 * time.Second
	retryMost  = 2 * time.Minute
)

// Later is an error of a task that is to run again after a time. Meanwhile a backup locks nothing, and of a backup that
// is being proven nothing is known.
type Later struct {
	After time.Duration // 0: soon, and some times more, then not before the next round
	Err   error
}

// Error returns why.
func (l *Later) Error() string { return fmt.Sprintf("again after %v: %v", l.After, l.Err) }

// Unwrap returns the cause.
func (l *Later) Unwrap() error { return l.Err }

// collisionError says that other transactions prevented a consistent dump. Another try may succeed.
type collisionError struct {
	object  string // what both wanted, in words for the user
	waiting string // what the backup waits for, follows object
	failed  string // why the backup failed in the end, follows object
	ofDump  bool   // pg_dump met it, though all tables were locked
	err     error
}

// Error returns what the backup collided with, and the cause.
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

// collisionOf returns err, which came of work on object, as a *collisionError if it is one.
func collisionOf(object string, err error) error {
	if _, done := errors.AsType[*collisionError](err); done || err == nil {
		return err
	}

	switch pg.State(err) {
	case "55P03": // lock_not_available
		return lockedAt(object, err)
	case "42P01", "3F000", "42809", "42501", "55000", "XX000":
		// undefined_table, invalid_schema_name, wrong_object_type, insufficient_privilege (of a view in a table's place),
		// object_not_in_prerequisite_state, internal_error (an entry of the catalogue is gone)
		return replacedAt(object, err)
	case "57P01": // admin_shutdown
		return replacedAt("the project's database", err)
	}

	return err
}

// dumpCollision is collisionOf for an error of pg_dump. PostgreSQL's messages are in English; see tenant.setRoles.
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

// postpone has a backup begun again later that collided with other transactions, unless that was tried for long enough.
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
