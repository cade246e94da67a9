// Package schema knows the tables of a project's database with their columns, indexes, constraints, policies and
// grants, and its enums and functions: it reads them from the catalogue, and changes them by statements that it
// builds from what it parsed, never from a client's text. (A condition, which only SQL can say, is walled in: see
// [condition].)
//
// Reads run on whatever the caller passes, the platform's own login in practice. Everything that a user shaped
// runs on the pool of the project's owner, which is no superuser; extensions are installed by the platform's login. Every pool pins its search path to
// pg_catalog, so each name in a statement here is qualified. Who may call is the interface's business.
//
// A failure of a user-shaped statement is translated by the step that provoked it, which knows the field to
// blame. What no step expects is a bug of ours and stays Internal.
//
// Fields at fault are named as the request has them: a column's in camelCase with the prefix "columns.N." (N
// from 0), all others in snake_case, and for what stands in a path "table", "schema", "functionName" and
// "arguments".
package schema

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
)

const (
	changeTime = 20 * time.Second // a change that takes longer is undone: code of the user's may run in it
	// at a thing that others rename or drop at the same time; each lost one is another's success
	attempts = 50
)

// settle gives a transaction the settings that its statements count on, whatever the owner chose for the role.
const settle = `
	select pg_catalog.set_config('lock_timeout', '5s', true),
	       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
	       pg_catalog.set_config('standard_conforming_strings', 'on', true),
	       pg_catalog.set_config('statement_timeout', '0', true),
	       pg_catalog.set_config('quote_all_identifiers', 'off', true),
	       pg_catalog.set_config('check_function_bodies', 'on', true),
	       pg_catalog.set_config('datestyle', 'ISO, MDY', true),
	       pg_catalog.set_config('intervalstyle', 'postgres', true)`

// errMoved says that a name led elsewhere, or nowhere, by the time that what it named was locked.
var errMoved = errors.New("renamed or dropped at the same time")

// change runs f in a transaction of the project's owner that the audit log has an entry of, within a time of ours that no setting of the owner's
// lifts. It fails with Conflict, code busy, if a lock can't be had, and with Unprocessable, code timeout, if
// the time is over.
func change(ctx context.Context, owner *pgxpool.Pool, f func(ctx context.Context, tx pgx.Tx) error) error {
	bounded, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()

	return audit.Write(bounded, owner, func(tx pgx.Tx) error {
		if _, err := tx.Exec(bounded, settle); err != nil {
			return err
		}

		err := f(bounded, tx)
		if err != nil && bounded.Err() != nil && ctx.Err() == nil {
			return fault.New(fault.Unprocessable, "the change took longer than %d seconds and was undone",
				int(changeTime.Seconds())).WithCode("timeout").Because(err)
		}

		return err
	})
}

// changeNamed is [change] for a thing that f finds by its name. When f fails with errMoved, it runs again and
// finds anew.
func changeNamed(ctx context.Context, owner *pgxpool.Pool, f func(ctx context.Context, tx pgx.Tx) error) error {
	var err error
	for range attempts {
		err = change(ctx, owner, f)
		if !errors.Is(err, errMoved) {
			return err
		}
	}

	return fault.New(fault.Conflict, "others change it at the same time; try again").WithCode("busy").Because(err)
}

// lock locks a table against everyone else and fails with errMoved if the name that t has is no longer that
// table's. A lock can be asked for by name only, so the catalogue decides afterwards.
func lock(ctx context.Context, tx pgx.Tx, t Table) error {
	return lockIn(ctx, tx, t, "access exclusive")
}

// lockIn is lock with another of the database's modes.
func lockIn(ctx context.Context, tx pgx.Tx, t Table, mode string) error {
	err := execute(ctx, tx, "lock table only "+pg.Quote(t.Schema, t.Name)+" in "+mode+" mode")
	switch pg.State(err) {
	case "42P01", "3F000", "42809": // undefined table or schema, another kind of thing
		return errMoved
	}

	if err != nil {
		return refused(err, nil)
	}

	held, err := pg.Value[bool](ctx, tx, `
		select exists (
			select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
			where c.oid = @id and c.relname = @name and n.nspname = @schema)`,
		pgx.StrictNamedArgs{"id": t.ID, "name": t.Name, "schema": t.Schema})
	if err != nil {
		return err
	}

	if !held {
		return errMoved
	}

	return nil
}

// execute runs a statement that was built here. The extended protocol takes one statement at a time, which is a
// second wall behind the quoting.
func execute(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Conn().PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Close()
	return err
}
