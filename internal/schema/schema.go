// Package schema reads and changes a project's database objects: tables, columns, indexes,
// constraints, triggers, policies, grants, enums and functions.
//
// It reads them from the PostgreSQL catalog. It builds statements from parsed input, never from
// client text. Conditions are the exception, since only SQL can express them: see [condition].
//
// Reads run on the caller's connection, in practice the platform's login. User code runs on the
// pool of the project's owner, who is no superuser. The platform's login installs extensions. Every
// pool pins search_path to pg_catalog, so names in statements are qualified. Package api authorizes
// callers.
//
// The step that runs a user-shaped statement translates the failure, since it knows the field to
// blame. Unexpected failures are this package's bugs and stay Internal.
//
// Fields in errors have request names: columns in camelCase with the prefix "columns.N." (N from
// 0), all others in snake_case. Path parameters are "table", "schema", "functionName" and
// "arguments".
package schema

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	// bounds user code that a change may run; a change that takes longer is rolled back
	changeTimeout = 20 * time.Second
	// Each failed attempt means that a concurrent rename or drop succeeded.
	maxAttempts = 50
)

// sessionSettings sets the session parameters that a transaction's statements rely on, regardless
// of the owner role's defaults.
const sessionSettings = `
	select pg_catalog.set_config('lock_timeout', '5s', true),
	       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
	       pg_catalog.set_config('standard_conforming_strings', 'on', true),
	       pg_catalog.set_config('statement_timeout', '0', true),
	       pg_catalog.set_config('quote_all_identifiers', 'off', true),
	       pg_catalog.set_config('check_function_bodies', 'on', true),
	       pg_catalog.set_config('datestyle', 'ISO, MDY', true),
	       pg_catalog.set_config('intervalstyle', 'postgres', true)`

// errConcurrentChange reports that a name referred to another object, or to none, once the object
// was locked.
var errConcurrentChange = errors.New("renamed or dropped at the same time")

// change runs f in an audited transaction on the owner's login. Its timeout is [changeTimeout],
// which no owner setting extends. It fails with Conflict, code busy, if a lock is not available,
// and with Unprocessable, code timeout, on timeout.
func change(ctx context.Context, owner pg.Beginner, f func(ctx context.Context, tx pgx.Tx) error) error {
	timeoutCtx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()

	return audit.Write(timeoutCtx, owner, func(tx pgx.Tx) error {
		if _, err := tx.Exec(timeoutCtx, sessionSettings); err != nil {
			return err
		}

		err := f(timeoutCtx, tx)
		if err != nil && timeoutCtx.Err() != nil && ctx.Err() == nil {
			return fault.New(fault.Unprocessable, "the change took longer than %d seconds and was rolled back",
				int(changeTimeout.Seconds())).WithCode("timeout").WithCause(err)
		}

		return err
	})
}

// changeNamed is [change] for an object that f looks up by name. It retries with a new lookup if f
// fails with [errConcurrentChange].
func changeNamed(ctx context.Context, owner *pgxpool.Pool, f func(ctx context.Context, tx pgx.Tx) error) error {
	var err error
	for range maxAttempts {
		err = change(ctx, owner, f)
		if !errors.Is(err, errConcurrentChange) {
			return err
		}
	}

	return fault.New(fault.Conflict, "a concurrent change is in progress; try again").WithCode("busy").WithCause(err)
}

// lock takes an access exclusive lock on a table. It fails with [errConcurrentChange] if t's name
// no longer refers to the same table. LOCK TABLE accepts only names, so lock checks the catalog
// afterwards.
func lock(ctx context.Context, tx pgx.Tx, t Table) error {
	return lockInMode(ctx, tx, t, "access exclusive")
}

// lockInMode is lock with another lock mode.
func lockInMode(ctx context.Context, tx pgx.Tx, t Table, mode string) error {
	err := execute(ctx, tx, "lock table only "+pg.Quote(t.Schema, t.Name)+" in "+mode+" mode")
	switch pg.State(err) {
	case "42P01", "3F000", "42809": // undefined table or schema, another kind of thing
		return errConcurrentChange
	}

	if err != nil {
		return translate(err, nil)
	}

	matches, err := pg.Value[bool](ctx, tx, `
		select exists (
			select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
			where c.oid = @id and c.relname = @name and n.nspname = @schema)`,
		pgx.StrictNamedArgs{"id": t.ID, "name": t.Name, "schema": t.Schema})
	if err != nil {
		return err
	}

	if !matches {
		return errConcurrentChange
	}

	return nil
}

// execute runs a statement that this package built. The extended protocol accepts a single
// statement, which is a second defense beside quoting.
func execute(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Conn().PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Close()
	return err
}

// changeTable is [changeNamed] for a table, which it locks exclusively. It fails as [GetTable]
// does, and with Conflict, code busy, if the table is locked.
func changeTable(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string,
	f func(ctx context.Context, tx pgx.Tx, t Table) error,
) error {
	return changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		t, err := GetTable(ctx, tx, project, ref)
		if err != nil {
			return err
		}

		if err := lock(ctx, tx, t); err != nil {
			return err
		}

		return f(ctx, tx, t)
	})
}

// alter runs an ALTER TABLE statement.
func alter(ctx context.Context, tx pgx.Tx, t Table, action string) error {
	return execute(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+" "+action)
}

// comment sets the comment on the object that sql names; "" removes it.
func comment(ctx context.Context, tx pgx.Tx, sql, text string) error {
	return execute(ctx, tx, "comment on "+sql+" is "+pg.Literal(text))
}

const maxComment = 10_000 // bytes

func checkComment(field, text string) error {
	if len(text) > maxComment || !pg.Storable(text) {
		return fault.OnField(fault.Unprocessable, field, "invalid_value",
			"must be text of at most %d bytes without a NUL", maxComment)
	}

	return nil
}

// requireConfirmation fails with Unprocessable on confirm unless the client confirmed a step that
// opens data.
func requireConfirmation(confirm bool, effect string) error {
	if confirm {
		return nil
	}
	return fault.OnField(fault.Unprocessable, "confirm", "confirmation_required",
		"must be true to confirm this change: it %s", effect)
}

// columnNames returns a table's column names in order.
func columnNames(ctx context.Context, q pg.Querier, table uint32) ([]string, error) {
	return pg.Values[string](ctx, q, `
		select attname from pg_catalog.pg_attribute where attrelid = @table and attnum > 0 and not attisdropped order by attnum`,
		pgx.StrictNamedArgs{"table": table})
}

// quoted returns names as an SQL list.
func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = pg.Quote(name)
	}

	return strings.Join(all, ", ")
}
