package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/rest/query"
)

// exchange is what is said on a connection for an execution: messages that prepare and execute statements, the last of which
// end the transaction and take away what code of the database's may have left in the session.
//
// A transaction that may write is a block, and ended before anything is taken away: a lock that its code took for the session
// is held until all can see what was written, and what is deferred still finds its settings. The statements for that are prepared like
// all others; where they may be gone, and where nothing is kept, a simple query says the same. One that only reads needs no block: nothing
// is deferred in it, and nobody waits for what it did. It is ended by the end of a simple query, with all that was done. Of a statement
// that runs no code of the database's nothing is left: the end of the messages ends its transaction, whatever it is.
type exchange struct {
	*execution
	wire
	known   *statements
	scratch *scratch
	awaited []awaited // what answers come, in order
	result  *result

	block    bool // the transaction is one
	reused   bool // a statement was there already
	careful  bool // no prepared statement may be there any more when the main one has run
	settle   int  // after so many statements of the simple query the outcome stands
	status   byte // of the transaction: I, idle; T, in a block; E, in one that has failed
	skipping bool // the server waits for a synchronization
	unclean  bool // something may be left in the session
}

// awaited is an answer that PostgreSQL owes: d, closed; p, prepared; b, begun; e, committed; v, settings behind a comparison of versions; s, settings and the like; c, the planner's guess; m, the
// statement itself; q, the simple query; r, what is left behind; z, synchronized.
type awaited struct {
	kind      byte
	statement *statement
}

// cleaning is endCarefully in statements of their own, which need not be read anew each time.
var cleaning = []string{"close all", "reset all", "unlisten *", "discard temp", unlock}

const (
	unlock       = "select pg_catalog.pg_advisory_unlock_all()"
	endReading   = "close all; reset all; unlisten *" // what reads makes no temporary tables; it is unlocked before
	endCarefully = endReading + "; discard temp; " + unlock
	endWriting   = "commit; " + endCarefully // where the statements that are kept for it may be gone
	endUndone    = "rollback; " + endCarefully
	endTried     = "set constraints all immediate; rollback; " + endCarefully

	commit       = "commit"
	leftPrepared = "select pg_catalog.string_agg('deallocate ' operator(pg_catalog.||) pg_catalog.quote_ident(name), '; ') from pg_catalog.pg_prepared_statements where from_sql"
)

// try runs the execution on a connection, and says so if its time was over before it was done.
func (x *exchange) try(ctx context.Context, conn *pgxpool.Conn) error {
	x.result = newResult()
	err := x.begin(ctx, conn, x.until, x.most)

	defer x.end()

	if err == nil {
		err = x.attempt()
	}

	switch {
	case err == nil || isServers(err) || isBroken(err):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded) || x.client.Err() != nil:
		return context.DeadlineExceeded
	}

	return err
}

// attempt runs it, and once more if a statement was prepared for what is no more.
func (x *exchange) attempt() error {
	if x.session.requests++; x.session.requests%lookEvery == 0 {
		x.called = true // what other code than that of functions has left prepared goes too
	}

	err := x.run()
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && x.reused && !x.lost && stale[pe.Code] && pe.Where == "" {
		x.session.forget()
		x.result.release()
		x.result, x.careful = newResult(), true
		err = x.run()
	}

	return err
}

func (x *exchange) run() error {
	x.status, x.skipping, x.unclean = 'I', false, false

	x.scratch = takeScratch()
	defer x.scratch.release()

	x.out, x.awaited = x.scratch.out[:0], x.scratch.awaited[:0]

	err := x.renew()
	if err == nil {
		err = x.ask()
	}
	if err == nil {
		err = x.answer()
	}

	if x.lost {
		_ = x.written()
	}

	x.scratch.out, x.scratch.awaited = x.out, x.awaited
	return err
}

// renew takes away what is left in a session that an older catalogue was used in: what by that ran no code of the database's may have
// come to do so before the newer one was there.
func (x *exchange) renew() error {
	if old := x.session.statements.catalog; old == nil || old == x.catalog {
		return nil
	}

	x.settle = strings.Count(endCarefully, ";") + 1
	x.awaited = append(x.awaited, awaited{kind: 'q'})

	err := errors.Join(x.query(endCarefully), x.hear())
	if err != nil {
		x.lost, x.spoken = true, false // of the request itself
	}

	return err
}

// ask queues what the request has to say, up to the point where its outcome is judged.
func (x *exchange) ask() error {
	s := x.scratch
	s.reserve(x.args, x.countArgs)

	args, err := s.encode(x.args)
	if err != nil {
		return err
	}

	countArgs, err := s.encode(x.countArgs)
	if err != nil {
		return err
	}

	if strings.IndexByte(x.sql, 0) >= 0 { // ends a statement on the wire
		return &query.Error{Status: http.StatusBadRequest, Code: "22021", Message: "a name can't hold a NUL"}
	}

	err = x.askAll(args, countArgs)
	x.lost = err != nil // what the connection is believed to know was not sent

	return err
}

func (x *exchange) askAll(args, countArgs [][]byte) (err error) {
	if x.known, err = x.statements(); err != nil {
		return err
	}

	inert := x.inert && !x.careful && !x.called
	if x.block = !x.readOnly && !inert || x.rollback || x.check != nil || x.isolation != ""; x.block {
		err = x.say('b', "", x.beginning(), nil)
	}

	if err == nil {
		kind := byte('s')
		if x.version.is != "" {
			kind = 'v'
		}

		err = x.say(kind, "", x.scratch.setting(x.settings, x.readOnly && !x.block, x.version), x.scratch.values)
	}

	if err == nil && x.before != "" {
		err = x.say('s', x.role, x.before, nil)
	}
	if err == nil && x.count != "" {
		err = x.say('c', x.role, "explain (format json) "+x.count, countArgs)
	}

	if err == nil {
		err = x.say('m', x.role, x.sql, args)
	}

	switch {
	case err != nil:
		return err
	case x.check != nil:
		return x.flush()
	case x.rollback:
		return x.sayEnd(endTried, 2)
	case x.block:
		return x.sayCommit()
	case inert:
		return x.saySync()
	case x.called || x.careful:
		return x.sayEnd(endCarefully, 5)
	}

	if !x.unlocks {
		if err := x.say('s', "", unlock, nil); err != nil {
			return err
		}
	}

	return x.sayEnd(endReading, 3)
}

// sayCommit queues the end of a transaction that is kept.
func (x *exchange) sayCommit() error {
	if x.careful {
		return x.sayEnd(endWriting, 1)
	}

	if err := x.say('e', "", commit, nil); err != nil {
		return err
	}

	for _, sql := range cleaning {
		if err := x.say('s', "", sql, nil); err != nil {
			return err
		}
	}

	return x.saySync()
}

// sayEnd queues the simple query. After so many of its statements the outcome stands.
func (x *exchange) sayEnd(sql string, settle int) error {
	x.settle = settle
	x.awaited = append(x.awaited, awaited{kind: 'q'})

	if err := x.query(sql); err != nil || !x.called {
		return err
	}

	return x.saySync()
}

// saySync queues the last of all, and before it what a function may have prepared.
func (x *exchange) saySync() error {
	if x.called {
		if err := x.say('r', "", leftPrepared, nil); err != nil {
			return err
		}
	}

	x.awaited = append(x.awaited, awaited{kind: 'z'})
	return x.sync()
}

// answer sends what is queued, and reads and judges the answers.
func (x *exchange) answer() error {
	err := x.hear()
	if err == nil && x.check != nil {
		err = x.judge()
	}

	if (x.unclean || x.result.prepared != nil) && !x.lost {
		x.clean()
	}

	return err
}

// judge ends the transaction by what the check says.
func (x *exchange) judge() error {
	if err := x.written(); err != nil {
		return err
	}

	refused := x.check(x.result)
	var err error
	switch {
	case refused != nil:
		err = x.sayEnd(endUndone, 1)
	case x.rollback:
		err = x.sayEnd(endTried, 2)
	default:
		err = x.sayCommit()
	}

	if err != nil {
		x.lost = true
		return err
	}

	if err := x.hear(); err != nil {
		return err
	}

	return refused
}

// clean takes away what is left in the session after a failure, or by a function. If that fails nobody gets the connection again.
func (x *exchange) clean() {
	err := x.written()
	x.awaited = x.awaited[:0]
	if err == nil && x.unclean {
		x.unclean = false

		if x.skipping {
			x.awaited = append(x.awaited, awaited{kind: 'z'})
			err = x.sync()
		}

		end := endCarefully
		if x.status != 'I' {
			end = endUndone
		}

		err = errors.Join(err, x.sayEnd(end, strings.Count(end, ";")+1), x.hear())
	}

	if err == nil && x.result.prepared != nil {
		x.awaited = append(x.awaited, awaited{kind: 'q'})
		err = errors.Join(x.query(string(x.result.prepared)), x.hear())
	}

	x.lost = x.lost || err != nil || x.unclean || x.status != 'I'
}

// hear sends what is queued, and reads the answers.
func (x *exchange) hear() error {
	if err := x.send(); err != nil {
		return err
	}
	return x.read()
}

// say queues a statement, prepared under a name that the connection keeps, or under none.
func (x *exchange) say(kind byte, role, sql string, args [][]byte) error {
	if x.unnamed {
		if err := x.prepare("", sql); err != nil {
			return err
		}

		x.awaited = append(x.awaited, awaited{kind: 'p'}, awaited{kind: kind})
		return x.execute("", args)
	}

	st, gone := x.known.get(role, sql)
	if gone != nil {
		if err := x.close(gone); err != nil {
			return err
		}
	}

	if st.ready {
		x.reused = true
	} else {
		if err := x.prepare(st.name, sql); err != nil {
			return err
		}
		x.awaited = append(x.awaited, awaited{'p', st})
	}

	x.awaited = append(x.awaited, awaited{kind, st})
	return x.execute(st.name, args)
}

func (x *exchange) close(st *statement) error {
	x.awaited = append(x.awaited, awaited{kind: 'd'})
	return x.deallocate(st.name)
}

func (x *exchange) beginning() string {
	sql := "begin"
	if x.isolation != "" {
		sql += " isolation level " + x.isolation
	}
	if x.readOnly {
		sql += " read only"
	}

	return sql
}

// read reads the answers that are owed, and returns the first failure unless the outcome stood before it.
func (x *exchange) read() error {
	owed := x.awaited
	x.awaited = x.awaited[:0]
	stands, last := false, len(owed)-1

	var first error
	for i, a := range owed {
		err := x.readOne(a)
		if err == nil {
			stands = stands || a.kind == 'q' || a.kind == 'e'
			continue
		}

		if pe, ok := errors.AsType[*pgconn.PgError](err); ok && a.kind == 'v' && pe.Code == "22P02" &&
			strings.Contains(pe.Message, staleMark) {
			err = &staleError{pe}
		}

		for _, b := range owed[i:] {
			if b.statement != nil && b.kind == 'p' && !b.statement.ready {
				x.known.drop(b.statement)
			}
		}

		x.lost = x.lost || !isServers(err)
		x.unclean = true

		if first == nil && !stands && !x.result.passed {
			first = err
		}

		if x.lost {
			return first
		}
		if a.kind == 'q' { // what comes after it is answered
			continue
		}

		if owed[last].kind != 'z' {
			x.skipping = true
			return first
		}

		if err := x.readOne(owed[last]); err != nil {
			x.lost = true
		}

		return first
	}

	return first
}

// readOne reads an answer.
func (x *exchange) readOne(a awaited) error {
	if a.kind == 'q' {
		return x.readEnd()
	}

	for {
		m, err := x.receive()
		if err != nil {
			return err
		}

		switch m {
		case bindComplete:
		case dataRow:
			if err := x.row(a.kind); err != nil {
				return err
			}
		case commandComplete, emptyQuery:
			switch a.kind {
			case 'b':
				x.status = 'T'
			case 'e':
				x.status = 'I'
			case 'm':
				if x.bare {
					return x.changedRows()
				}
			}

			return nil
		case parseComplete:
			if a.statement != nil {
				a.statement.ready = true
			}
			return nil
		case closeComplete:
			return nil
		case readyForQuery:
			x.status = x.session.in.status
			return nil
		default:
			return fmt.Errorf("an answer %q to %c", m, a.kind)
		}
	}
}

// readEnd reads the answers to the simple query. It fails if it did before the outcome stood.
func (x *exchange) readEnd() error {
	var failed error
	for done := 0; ; {
		m, err := x.receive()
		if err != nil && (x.lost || !isServers(err)) {
			x.lost = true

			if done >= x.settle {
				return nil
			}

			return err
		}

		if err != nil {
			x.unclean = true

			if done < x.settle {
				failed = err
			}

			continue
		}

		switch m {
		case commandComplete:
			done++
		case readyForQuery:
			x.status = x.session.in.status
			return failed
		}
	}
}
