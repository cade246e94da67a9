package statement

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/sqllex"
)

// Limits of a script.
const (
	MaxScript           = 1 << 20 // bytes
	maxScriptStatements = 20_000
)

// Script is the SQL of a file. Its results are discarded, so each statement runs to its end.
type Script struct {
	Field      string // name of the text in errors
	Statements []sqllex.Statement
	Full       bool // it may not grow the database

	// Begin and End run in the transaction of the statements, before and after them. Without Begin,
	// each statement is a transaction of its own.
	Begin, End func(ctx context.Context, conn *pgconn.PgConn) error

	// Instead runs in place of a statement, if it reports that it did.
	Instead func(ctx context.Context, s sqllex.Statement) (done bool, err error)
}

// SplitScript splits the text of a script into its statements. It fails with Unprocessable on
// field.
func SplitScript(field, text string) ([]sqllex.Statement, error) {
	if len(text) > MaxScript {
		return nil, fault.OnField(fault.Unprocessable, field, "too_large", "must be at most %d bytes", MaxScript)
	}
	if strings.Contains(text, "\x00") {
		return nil, fault.OnField(fault.Unprocessable, field, "invalid_format", "must not contain the character NUL")
	}

	statements := sqllex.Split(text)
	if len(statements) > maxScriptStatements {
		return nil, fault.OnField(fault.Unprocessable, field, "too_many", "must be at most %d statements",
			maxScriptStatements)
	}

	for i, s := range statements {
		if forbidden(s) {
			f := fault.OnField(fault.Unprocessable, field, "not_allowed", "must not contain %s",
				strings.ToUpper(s.Words[0]))
			f.Extra = map[string]any{"postgres": PostgresError{
				Message:   strings.ToUpper(s.Words[0]) + " is not possible here",
				Detail:    "A file is one transaction, or one transaction per statement. Data is imported separately.",
				Position:  s.FirstChar() + 1,
				Statement: i + 1,
			}}

			return nil, f
		}
	}

	return statements, nil
}

// RunScript runs a script on a session of a project's owner, which the caller resets or discards
// afterwards. PostgreSQL's errors are Unprocessable on the script's field, with the original error
// in the member postgres. If RunScript fails, a transaction is left open.
func RunScript(ctx context.Context, conn *pgconn.PgConn, script Script) error {
	conn.Frontend().SetMaxBodyLen(maxRow)
	s := &session{conn: conn}

	// A setting of a transaction ends with it.
	begin, state := "begin read write;"+settings, byte('T')
	if script.Begin == nil {
		begin, state = strings.ReplaceAll(settings, ", true)", ", false)"), 'I'
	}

	if _, err := conn.Exec(ctx, begin).ReadAll(); err != nil {
		return pg.Fault(err)
	}

	if script.Begin != nil {
		if err := script.Begin(ctx, conn); err != nil {
			return err
		}
	}

	var before map[string]relationSize
	if script.Full {
		var err error
		if before, err = s.sizes(ctx, selectSizes); err != nil {
			return pg.Fault(err)
		}
	}

	for i, statement := range script.Statements {
		if err := s.step(ctx, script, i, statement); err != nil {
			return err
		}

		if conn.TxStatus() != state {
			return fault.OnField(fault.Unprocessable, script.Field, "not_allowed",
				"must neither begin nor end a transaction")
		}
	}

	if script.Begin == nil {
		return nil
	}

	return s.commit(ctx, script, before)
}

// step runs a statement of a script.
func (s *session) step(ctx context.Context, script Script, i int, statement sqllex.Statement) error {
	if script.Instead != nil {
		if done, err := script.Instead(ctx, statement); done || err != nil {
			return err
		}
	}

	if err := s.runToEnd(ctx, script.Field, statement.Text); err != nil {
		return translate(script.Field, err, i, statement)
	}

	return nil
}

// commit ends the transaction of a script. Deferred constraints run first, since End records the
// success.
func (s *session) commit(ctx context.Context, script Script, before map[string]relationSize) error {
	last := sqllex.Statement{}
	if n := len(script.Statements); n > 0 {
		last = script.Statements[n-1]
	}

	const finish = "set constraints all immediate; set local search_path = pg_catalog, pg_temp"
	if _, err := s.conn.Exec(ctx, finish).ReadAll(); err != nil {
		return translate(script.Field, err, max(len(script.Statements)-1, 0), last)
	}

	if script.End != nil {
		if err := script.End(ctx, s.conn); err != nil {
			return err
		}
	}

	if script.Full {
		after, err := s.sizes(ctx, sealTransaction+selectSizes)
		if err != nil {
			return translate(script.Field, err, max(len(script.Statements)-1, 0), last)
		}

		if growth(before, after) > 0 {
			return errGrows
		}
	}

	if _, err := s.conn.Exec(ctx, "commit").ReadAll(); err != nil {
		return translate(script.Field, err, max(len(script.Statements)-1, 0), last)
	}

	return nil
}

// runToEnd runs one statement with the extended protocol, which rejects further statements, and
// discards its rows.
func (s *session) runToEnd(ctx context.Context, field, sql string) error {
	f := s.conn.Frontend()
	f.SendParse(&pgproto3.Parse{Query: sql})
	f.SendBind(&pgproto3.Bind{})
	f.SendExecute(&pgproto3.Execute{})
	f.SendSync(&pgproto3.Sync{})

	if err := f.Flush(); err != nil {
		return err
	}

	var failed error
	for {
		message, err := s.conn.ReceiveMessage(ctx)
		if err != nil {
			return err
		}

		switch m := message.(type) {
		case *pgproto3.ErrorResponse:
			failed = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyInResponse, *pgproto3.CopyOutResponse, *pgproto3.CopyBothResponse:
			return fault.OnField(fault.Unprocessable, field, "not_allowed", "must not contain COPY")
		case *pgproto3.ReadyForQuery:
			return failed
		}
	}
}

// CheckQuota fails with TooLarge if a project's database exceeds its quota by far, so that nothing
// runs. full tells that it exceeds the quota.
func CheckQuota(p *projectdb.Project) (full bool, err error) {
	if !p.OverQuota() {
		return false, nil
	}
	if p.FarOverQuota() {
		return true, projectdb.ErrOverQuota
	}

	return true, nil
}

// EndSession ends a session within [endTimeout], also after ctx has ended. If interrupted is set,
// it waits until PostgreSQL has canceled the statement, and so rolled back its transaction.
func EndSession(ctx context.Context, conn *pgconn.PgConn, interrupted bool) {
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer done()

	_ = conn.Close(closing) // errors do not matter, since the session is discarded

	if !interrupted {
		return
	}

	select {
	case <-conn.CleanupDone():
	case <-closing.Done():
	}
}

// TimeoutFault returns the failure of a script that took too long.
func TimeoutFault(field, limit string, cause error) error {
	return fault.OnField(fault.Unprocessable, field, "timeout", "was rolled back: it took longer than %s", limit).
		WithCause(fmt.Errorf("timeout: %w", cause))
}
