package statement

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/fault"
)

// commandSettings are a command's initial settings, for the session. PostgreSQL ends the session of
// a killed server in the middle of a statement.
const commandSettings = `
	select pg_catalog.set_config('search_path', 'public, extensions', false),
	       pg_catalog.set_config('client_min_messages', 'error', false),
	       pg_catalog.set_config('client_connection_check_interval', '5s', false)`

// RunCommand runs SQL of a developer on an owner session, which the caller discards afterwards. All
// statements are one transaction, unless they begin and end transactions themselves. RunCommand
// discards the rows and returns the last statement's command tag. PostgreSQL's errors are returned
// as they are.
//
// A full project's command runs as a script in one transaction, which may not grow the database; it
// has no tag.
func RunCommand(ctx context.Context, conn *pgconn.PgConn, field, sql string, full bool) (tag string, err error) {
	if full {
		return "", runFull(ctx, conn, field, sql)
	}

	conn.Frontend().SetMaxBodyLen(maxRow)

	if _, err := conn.Exec(ctx, commandSettings).ReadAll(); err != nil {
		return "", err
	}

	return runSimple(ctx, conn, field, sql)
}

// runFull runs a command that may not grow the database.
func runFull(ctx context.Context, conn *pgconn.PgConn, field, sql string) error {
	steps, err := SplitScript(field, sql, true)
	if err != nil {
		return err
	}

	_, err = RunScript(ctx, conn, Script{Field: field, Steps: steps, Full: true,
		Platform: func(context.Context, func(pgx.Tx) error) error { return errGrows },
		Begin:    func(context.Context, *pgconn.PgConn) error { return nil }})
	return err
}

// runSimple runs statements with the simple protocol and discards the rows.
func runSimple(ctx context.Context, conn *pgconn.PgConn, field, sql string) (tag string, err error) {
	f := conn.Frontend()
	f.SendQuery(&pgproto3.Query{String: sql})
	if err := f.Flush(); err != nil {
		return "", err
	}

	var serverErr error
	for {
		message, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return "", err
		}

		switch m := message.(type) {
		case *pgproto3.CommandComplete:
			tag = validUTF8(string(m.CommandTag))
		case *pgproto3.ErrorResponse:
			serverErr = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyInResponse, *pgproto3.CopyOutResponse, *pgproto3.CopyBothResponse:
			return "", fault.OnField(fault.Unprocessable, field, "not_allowed", "must not contain COPY")
		case *pgproto3.ReadyForQuery:
			if serverErr == nil && m.TxStatus != 'I' {
				serverErr = fault.OnField(fault.Unprocessable, field, "not_allowed",
					"must end the transaction that it begins")
			}

			return tag, serverErr
		}
	}
}
