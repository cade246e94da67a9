package statement

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// MaxScript is the maximum size of a script in bytes.
const MaxScript = 4 << 20

// Script is SQL from a file. All results are discarded, so each statement runs to the end.
type Script struct {
	Field    string // field name in errors
	Steps    []Step
	Full     bool     // it may not grow the database
	Platform Platform // for extensions
	// Placed has schemas of extensions, by name, for statements that name none. Without an entry,
	// it is [schema.DefaultSchema].
	Placed map[string]string

	// Begin and End run in the statements' transaction, before and after them. Without Begin, each
	// statement is a transaction of its own.
	Begin, End func(ctx context.Context, conn *pgconn.PgConn) error
}

// SplitScript splits a script into its steps. With single, they run in one transaction. SplitScript
// fails with Unprocessable on field.
func SplitScript(field, text string, single bool) ([]Step, error) {
	if len(text) > MaxScript {
		return nil, fault.OnField(fault.Unprocessable, field, "too_large", "must be at most %d bytes", MaxScript)
	}
	if strings.Contains(text, "\x00") {
		return nil, fault.OnField(fault.Unprocessable, field, "invalid_format", "must not contain the character NUL")
	}

	return split(field, text, single)
}

// RunScript runs a script on an owner session, which the caller resets or discards afterwards.
// PostgreSQL's errors are Unprocessable on the script's field, with the original error in the
// member postgres. If RunScript fails, a transaction is left open. The notes say what was left out
// or changed.
func RunScript(ctx context.Context, conn *pgconn.PgConn, script Script) ([]StepNote, error) {
	conn.Frontend().SetMaxBodyLen(maxRow)
	s := &session{conn: conn}

	if script.Begin != nil {
		var err error
		if script.Steps, err = script.extensions().prepare(ctx, script.Steps); err != nil {
			return nil, err
		}
	}

	// A transaction's settings end with it.
	begin, state := "begin read write;"+settings, byte('T')
	if script.Begin == nil {
		begin, state = strings.ReplaceAll(settings, ", true)", ", false)"), 'I'
	}

	if _, err := conn.Exec(ctx, begin).ReadAll(); err != nil {
		return nil, pg.Fault(err)
	}

	if script.Begin != nil {
		if err := script.Begin(ctx, conn); err != nil {
			return nil, err
		}
	}

	var baseline map[string]relationSize
	if script.Full {
		var err error
		if baseline, err = s.sizes(ctx, selectSizes); err != nil {
			return nil, pg.Fault(err)
		}
	}

	var notes []StepNote
	for i, step := range script.Steps {
		step, err := s.step(ctx, script, i, step)
		if err != nil {
			return nil, err
		}

		notes = append(notes, step.notes(i)...)
		if conn.TxStatus() != state {
			return nil, fault.OnField(fault.Unprocessable, script.Field, "not_allowed",
				"must neither begin nor end a transaction")
		}
	}

	if script.Begin == nil {
		return notes, nil
	}

	return notes, s.commit(ctx, script, baseline)
}

func (s Script) extensions() extensions { return extensions{s.Field, s.Platform, s.Full, s.Placed} }

// step runs a script's i-th step and returns it with the outcome. In a transaction, steps on
// extensions have run before.
func (s *session) step(ctx context.Context, script Script, i int, step Step) (Step, error) {
	separate := script.Begin == nil
	switch {
	case step.Action == dialect.CreateExtension && separate:
		return script.extensions().create(ctx, i, step)
	case step.Action == dialect.DropExtension && separate:
		return script.extensions().drop(ctx, i, step)
	case step.Action == dialect.MoveExtension && separate:
		return script.extensions().move(ctx, i, step)
	case step.Action != dialect.Run:
		return step, nil
	}

	if separate {
		var err error
		if step, err = script.extensions().createForBlock(ctx, i, step); err != nil {
			return step, err
		}
	}

	if err := s.runToEnd(ctx, script.Field, step.SQL); err != nil {
		return step, translate(script.Field, err, i, step)
	}

	return step, nil
}

// commit ends a script's transaction. Deferred constraints run first, since End records the
// success.
func (s *session) commit(ctx context.Context, script Script, baseline map[string]relationSize) error {
	last := Step{}
	if n := len(script.Steps); n > 0 {
		last = script.Steps[n-1]
	}

	const finish = "set constraints all immediate; set local search_path = pg_catalog, pg_temp"
	if _, err := s.conn.Exec(ctx, finish).ReadAll(); err != nil {
		return translate(script.Field, err, max(len(script.Steps)-1, 0), last)
	}

	if script.End != nil {
		if err := script.End(ctx, s.conn); err != nil {
			return err
		}
	}

	if script.Full {
		sizes, err := s.sizes(ctx, sealTransaction+selectSizes)
		if err != nil {
			return translate(script.Field, err, max(len(script.Steps)-1, 0), last)
		}

		if growth(baseline, sizes) > 0 {
			return errGrows
		}
	}

	if _, err := s.conn.Exec(ctx, "commit").ReadAll(); err != nil {
		return translate(script.Field, err, max(len(script.Steps)-1, 0), last)
	}

	return nil
}

// runToEnd runs one statement with the extended protocol, which rejects further statements, and
// discards the rows.
func (s *session) runToEnd(ctx context.Context, field, sql string) error {
	f := s.conn.Frontend()
	f.SendParse(&pgproto3.Parse{Query: sql})
	f.SendBind(&pgproto3.Bind{})
	f.SendExecute(&pgproto3.Execute{})
	f.SendSync(&pgproto3.Sync{})

	if err := f.Flush(); err != nil {
		return err
	}

	var serverErr error
	for {
		message, err := s.conn.ReceiveMessage(ctx)
		if err != nil {
			return err
		}

		switch m := message.(type) {
		case *pgproto3.ErrorResponse:
			serverErr = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyInResponse, *pgproto3.CopyOutResponse, *pgproto3.CopyBothResponse:
			return fault.OnField(fault.Unprocessable, field, "not_allowed", "must not contain COPY")
		case *pgproto3.ReadyForQuery:
			return serverErr
		}
	}
}

// CheckQuota fails with TooLarge if a project's database exceeds the quota by far, so that nothing
// runs. full reports whether it exceeds the quota.
func CheckQuota(p *projectdb.Project) (full bool, err error) {
	if !p.OverQuota() {
		return false, nil
	}
	if p.FarOverQuota() {
		return true, projectdb.ErrOverQuota
	}

	return true, nil
}

// EndSession ends a session within [endTimeout], also after ctx has ended. With awaitCancel, it
// waits until PostgreSQL has canceled the statement, and so rolled back the transaction.
func EndSession(ctx context.Context, conn *pgconn.PgConn, awaitCancel bool) {
	closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()

	_ = conn.Close(closeCtx) // errors do not matter, since the session is discarded

	if !awaitCancel {
		return
	}

	select {
	case <-conn.CleanupDone():
	case <-closeCtx.Done():
	}
}

// TimeoutFault returns the failure for a script that took too long.
func TimeoutFault(field, limit string, cause error) error {
	return fault.OnField(fault.Unprocessable, field, "timeout", "was rolled back: it took longer than %s", limit).
		WithCause(fmt.Errorf("timeout: %w", cause))
}
