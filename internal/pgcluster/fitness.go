package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// errPooler reports a pooler between Socle and PostgreSQL. Socle needs sessions of its own for
// prepared statements, LISTEN, advisory locks and settings such as the search path.
var errPooler = errors.New("a connection pooler stands before PostgreSQL: it shares sessions, or drops their settings. " +
	"Give PostgreSQL's own address, or that of a proxy that passes connections through, such as HAProxy")

// CheckFitness fails, with a sentence for the administrator, unless an address leads to a
// PostgreSQL that Socle can work with: a primary, without a pooler before it, as a superuser.
func CheckFitness(ctx context.Context, config *pgx.ConnConfig) error {
	first, err := connectOwn(ctx, config)
	if err != nil {
		return err
	}
	defer first.Close(context.WithoutCancel(ctx))

	state, err := pg.One[struct {
		PID             int64
		Path, Login     string
		Superuser, Read bool
	}](ctx, first, `
		select pg_backend_pid() as pid, current_setting('search_path') as path, session_user::text as login,
			(select rolsuper from pg_roles where rolname = session_user) as superuser,
			pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as read`)
	switch {
	case err != nil:
		return err
	case state.Path != config.RuntimeParams["search_path"]:
		return errPooler
	case state.Read:
		return errors.New("the platform database is read-only: use the primary, not a standby")
	case !state.Superuser:
		return fmt.Errorf("the login %s is no superuser. Socle creates event triggers, logins that bypass row level "+
			"security, and settings of logins, which only a superuser may: alter role %[1]s superuser", pg.Quote(state.Login))
	}

	return checkOwnSession(ctx, config, first, state.PID)
}

// checkOwnSession fails if a connection shares its backend pid with others. A pooler in transaction
// mode gives the backend of the first connection, which is idle, to a second one, or another one to
// the first while the second holds its own.
func checkOwnSession(ctx context.Context, config *pgx.ConnConfig, first *pgx.Conn, pid int64) error {
	second, err := connectOwn(ctx, config)
	if err != nil {
		return err
	}
	defer second.Close(context.WithoutCancel(ctx))

	tx, err := second.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()

	const backend = `select pg_backend_pid()::bigint`
	other, err := pg.Value[int64](ctx, tx, backend)
	if err != nil {
		return err
	}

	again, err := pg.Value[int64](ctx, first, backend)
	if err == nil && (other == pid || again != pid) {
		return errPooler
	}

	return err
}

// connectOwn connects by the simple protocol, which poolers understand too.
func connectOwn(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config = config.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol

	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil && strings.Contains(err.Error(), "unsupported startup parameter") { // PgBouncer's
		return nil, errPooler
	}

	return conn, err
}
