package pgdump

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/dialect"
)

// attempted is a statement that may fail. The verdict's first note is the reason for leaving it out
// then.
type attempted struct {
	statement
	verdict
}

// attempt executes a statement, and leaves it out if it fails. It also leaves out a trigger on
// auth.users if rows refer to missing users: importing these would add such rows once more.
func (i *importer) attempt(ctx context.Context, a attempted) error {
	if err := i.begin(ctx); err != nil {
		return err
	}

	reason := a.notes[0]
	if a.action == attemptTrigger && i.usersMissing {
		i.note(a.statement, note{reason.topic, reason.text + ": rows refer to users that the project does not have"})
		return nil
	}

	rejection, err := i.try(ctx, a.statement)
	if err != nil {
		return err
	}
	if rejection != nil {
		isForeignKeyViolation := rejection.Code == "23503"
		i.usersMissing = i.usersMissing || (a.action == attemptKey && isForeignKeyViolation)
		i.note(a.statement, note{reason.topic, reason.text + ": " + rejection.Message})
		return nil
	}

	i.report.Statements++
	for _, n := range a.notes[1:] {
		i.note(a.statement, n)
	}

	return nil
}

// tryRun executes a statement, and leaves it out with its dependents if it fails.
func (i *importer) tryRun(ctx context.Context, s statement, v verdict) error {
	if err := i.begin(ctx); err != nil {
		return err
	}

	rejection, err := i.try(ctx, s)
	if err != nil {
		return err
	}
	if rejection != nil {
		if sql, notes := i.rules.omissions.reduced(s.Text, v.subject); sql != "" {
			s.Text, v.notes = sql, append(v.notes, notes...)
			return i.tryRun(ctx, s, v) // names nothing left out any more
		}
		if !isOmissible(rejection) {
			at := *rejection
			at.Position = max(0, at.Position-int32(len(beginAttempt)))
			return failed(s, &at)
		}

		i.rules.omissions.addStatement(dialect.Tokenize(s.Text, 0), v.subject)
		i.note(s, note{Objects, summarize(v.subject, s.Text) + ": " + rejection.Message})

		return nil
	}

	i.rules.omissions.created(v.subject)
	i.report.Statements++
	for _, n := range v.notes {
		i.note(s, n)
	}

	return nil
}

const beginAttempt = "savepoint attempt;"

// try executes a statement, in a savepoint if a transaction has begun. It returns PostgreSQL's
// rejection, which undoes nothing else.
func (i *importer) try(ctx context.Context, s statement) (*pgconn.PgError, error) {
	sql := s.Text
	if i.inTx {
		if err := i.flush(ctx); err != nil {
			return nil, err
		}
		sql = beginAttempt + s.Text + separator + "release savepoint attempt"
	}

	_, err := i.conn.Exec(ctx, sql).ReadAll()
	rejection, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !i.inTx {
		if ok {
			err = nil
		}
		return rejection, err
	}

	_, err = i.conn.Exec(ctx, "rollback to savepoint attempt; release savepoint attempt").ReadAll()
	return rejection, err
}
