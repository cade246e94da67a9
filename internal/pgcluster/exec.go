package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// ExecIgnoring executes a statement and treats an SQLSTATE as success.
func ExecIgnoring(ctx context.Context, conn *pgx.Conn, sql, state string) error {
	if err := Exec(ctx, conn, sql); pg.State(err) != state {
		return err
	}
	return nil
}

// ExecAll executes statements one by one.
func ExecAll(ctx context.Context, conn *pgx.Conn, statements []string) error {
	for _, sql := range statements {
		if err := Exec(ctx, conn, sql); err != nil {
			return errors.Join(fmt.Errorf("%s", sql), err)
		}
	}

	return nil
}

// ExecBatch executes statements in one transaction and one round trip. CREATE DATABASE and DROP
// DATABASE cannot be among them.
func ExecBatch(ctx context.Context, conn *pgx.Conn, statements []string) error {
	return Exec(ctx, conn, strings.Join(statements, ";\n"))
}

// ExecUntriggered is [ExecBatch] in a project's database, without the event triggers, which check
// users' statements.
func ExecUntriggered(ctx context.Context, conn *pgx.Conn, statements []string) error {
	return ExecBatch(ctx, conn, append([]string{"set local session_replication_role = replica"}, statements...))
}

// maxConflicts is the maximum number of attempts for a conflicting statement. Each conflict means
// that a concurrent statement succeeded.
const maxConflicts = 20

// Exec executes one or more statements in one transaction on the server's shared catalogs, and
// retries on conflict.
//
// PostgreSQL makes a concurrent update to the same row wait and then fail. Two jobs for a project
// may set its logins' attributes at the same time, and the owner may set its own. A failed
// statement has changed nothing.
func Exec(ctx context.Context, conn *pgx.Conn, sql string) error {
	var err error
	for range maxConflicts {
		_, err = conn.Exec(ctx, sql)
		// internal_error (tuple concurrently updated), unique_violation
		if s := pg.State(err); s != "XX000" && s != "23505" {
			return err
		}
	}

	return err
}
