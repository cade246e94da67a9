package pgdump

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/dialect"
)

// attempted is a statement that may fail. The first note of its verdict is the reason for leaving
// it out then.
type attempted struct {
	statement
	verdict
}

// attempt executes a statement that may fail. Then it is left out. So is a trigger on auth.users if
// rows of the dump refer to missing users: it would add such rows once more when they are imported.
func (i *importer) attempt(ctx context.Context, a attempted) error {
	if err := i.begin(ctx); err != nil {
		return err
	}

	reason := a.notes[0]
	if a.action == attemptTrigger && i.usersMissing {
		i.note(a.statement, note{reason.topic, reason.text + ": rows refer to users that the project does not have"})
		return nil
	}

	refused, err := i.try(ctx, a.statement)
	if err != nil {
		return err
	}
	if refused != nil {
		i.usersMissing = i.usersMissing || (a.action == attemptKey && refused.Code == "23503") // foreign_key_violation
		i.note(a.statement, note{reason.topic, reason.text + ": " + refused.Message})
		return nil
	}

	i.report.Statements++
	for _, n := range a.notes[1:] {
		i.note(a.statement, n)
	}

	return nil
}

// tryRun executes a statement that may fail. Then it is left out, and so is what depends on it.
func (i *importer) tryRun(ctx context.Context, s statement, v verdict) error {
	if err := i.begin(ctx); err != nil {
		return err
	}

	refused, err := i.try(ctx, s)
	if err != nil {
		return err
	}
	if refused != nil {
		if sql, notes := i.rules.left.reduced(s.Text, v.subject); sql != "" {
			s.Text, v.notes = sql, append(v.notes, notes...)
			return i.tryRun(ctx, s, v) // names nothing left out any more
		}
		if !isOmissible(refused) {
			at := *refused
			at.Position = max(0, at.Position-int32(len(beginAttempt)))
			return failed(s, &at)
		}

		i.rules.left.add(dialect.Tokenize(s.Text, 0), v.subject)
		i.note(s, note{Objects, summarize(v.subject, s.Text) + ": " + refused.Message})

		return nil
	}

	i.rules.left.created(v.subject)
	i.report.Statements++
	for _, n := range v.notes {
		i.note(s, n)
	}

	return nil
}

const beginAttempt = "savepoint attempt;"

// try executes a statement, in a savepoint of the transaction. It returns its failure, which undoes
// nothing else.
func (i *importer) try(ctx context.Context, s statement) (*pgconn.PgError, error) {
	sql := s.Text
	if i.begun {
		if err := i.flush(ctx); err != nil {
			return nil, err
		}
		sql = beginAttempt + s.Text + separator + "release savepoint attempt"
	}

	_, err := i.conn.Exec(ctx, sql).ReadAll()
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !i.begun {
		if ok {
			err = nil
		}
		return refused, err
	}

	_, err = i.conn.Exec(ctx, "rollback to savepoint attempt; release savepoint attempt").ReadAll()
	return refused, err
}
