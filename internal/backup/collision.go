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

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Backoff after a backup collides with other transactions.
const (
	retryTimeout  = 30 * time.Minute // from the first attempt to the last
	minRetryDelay = 5 * time.Second
	maxRetryDelay = 2 * time.Minute
)

// RetryError asks the queue to run a task again after After. Meanwhile a backup holds no locks, and
// a proof has no result.
type RetryError struct {
	After time.Duration // 0: use the queue's retry policy, then the next periodic run
	Err   error
}

// Error returns the delay and the cause.
func (l *RetryError) Error() string { return fmt.Sprintf("retry after %v: %v", l.After, l.Err) }

// Unwrap returns the cause.
func (l *RetryError) Unwrap() error { return l.Err }

// collisionError reports that other transactions prevented a consistent dump. A retry may succeed.
type collisionError struct {
	object  string // contended object, in words for the user
	waiting string // clause after object: what the backup waits for
	failure string // clause after object: why the backup failed in the end
	inDump  bool   // reported by pg_dump, although all tables were locked
	err     error
}

// Error returns the object, the collision and the cause.
func (c *collisionError) Error() string { return c.object + " " + c.failure + ": " + c.err.Error() }

// Unwrap returns the cause.
func (c *collisionError) Unwrap() error { return c.err }

func lockCollision(object string, err error) *collisionError {
	return &collisionError{object: object, waiting: ", which another transaction has locked",
		failure: "was locked by another transaction", err: err}
}

func changeCollision(object string, err error) *collisionError {
	return &collisionError{object: object, waiting: ", which was changed while the backup was made",
		failure: "was changed during each attempt", err: err}
}

// asCollision converts an error for object to a *collisionError if the SQLSTATE indicates a
// collision, and returns it unchanged otherwise.
func asCollision(object string, err error) error {
	if _, ok := errors.AsType[*collisionError](err); ok || err == nil {
		return err
	}

	switch pg.State(err) {
	case "55P03": // lock_not_available
		return lockCollision(object, err)
	case "42P01", "3F000", "42809", "42501", "55000", "XX000":
		// undefined_table, invalid_schema_name, wrong_object_type, insufficient_privilege (a view
		// in a table's place), object_not_in_prerequisite_state, internal_error (a catalog entry is
		// gone)
		return changeCollision(object, err)
	case "57P01": // admin_shutdown
		return changeCollision("the project's database", err)
	}

	return err
}

// asDumpCollision is asCollision for a pg_dump error, whose text it matches. PostgreSQL's messages
// are in English: projectdb.setLoginAttributes sets lc_messages.
func asDumpCollision(err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return err
	}

	collision := parseCollision(err)
	if collision == nil {
		return err
	}

	collision.inDump = true
	return collision
}

func parseCollision(err error) *collisionError {
	text := err.Error()
	contains := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(text, t) })
	}
	switch {
	case contains("canceling statement due to statement timeout", "canceling statement due to lock timeout"):
		if match := lockStatement.FindStringSubmatch(text); match != nil {
			return lockCollision("the table "+match[1], err)
		}
		return lockCollision("a table", err)
	case contains("terminating connection due to administrator command"):
		return changeCollision("the project's database", err)
	case contains("does not exist", "could not open relation with OID", "cache lookup failed", "access to non-system",
		"is not a table"):
		object := "an object of the database"
		if match := serverError.FindStringSubmatch(text); match != nil {
			object += " (" + match[1] + ")"
		}

		return changeCollision(object, err)
	}

	return nil
}

var (
	lockStatement = regexp.MustCompile(`LOCK TABLE (?:ONLY )?([^,\n]{1,200}) IN ACCESS SHARE MODE`)
	serverError   = regexp.MustCompile(`ERROR:  ([^\n]{1,200})`)
)

// postpone reschedules a backup that collided with other transactions. It fails the backup with
// Conflict after retryTimeout.
func (s *Service) postpone(ctx context.Context, b Backup, collision *collisionError) error {
	// A heartbeat at this moment finds the backup no longer running, and cancels ctx.
	recordCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()

	age, err := s.setPending(recordCtx, b.UUID, collision.object+collision.waiting)
	if err != nil {
		return errors.Join(collision, err)
	}

	if age > retryTimeout {
		return fault.New(fault.Conflict, "%s %s, for %d minutes",
			collision.object, collision.failure, int(retryTimeout.Minutes())).WithCause(collision)
	}

	return &RetryError{min(max(age/2, minRetryDelay), maxRetryDelay), collision}
}
