package pgdump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// SearchPath is a project's search path, quoted.
const SearchPath = `"public", "extensions"`

// noPath is the search path under which pg_dump prints names.
const noPath = `''`

// Loader executes pg_restore's scripts on a connection, entry by entry, each in a transaction.
//
// pg_dump prints statements for an empty search path. Function bodies, however, are text: their
// names are looked up when an expression calls them, for a check, an index or a materialized view.
// A statement that only defines an object is therefore executed with the empty path. A statement
// that evaluates stored objects' expressions is executed with the project's path. If PostgreSQL
// rejects it, the other paths are tried.
type Loader struct {
	Conn *pgconn.PgConn
	// WidePath returns a longer search path for an entry that fails under the project's.
	WidePath func(Entry) string
	// HoldPostData leaves the entries that follow the rows to Held if an entry before them fails.
	// Triggers would change rows that are loaded later, and materialized views would lack them.
	HoldPostData bool
	Held         []Entry
}

// Failure is an entry that PostgreSQL rejected under each search path. It left nothing behind.
type Failure struct {
	Entry     Entry
	Statement string // its start
	Cause     *pgconn.PgError
}

const (
	// maxEntryText bounds an entry's bytes in memory. A longer entry, such as large objects, is
	// executed in parts, and with one search path.
	maxEntryText = 1 << 20

	maxFailedStatement = 2000 // bytes
)

// Load executes a script for some entries, which pg_restore has written with --verbose. It returns
// the failures in script order. retry tells that the entries have failed before: rows can be read
// once, so they get another search path then.
//
// The error is a lost connection, a cut-off script, or a server without resources.
func (l *Loader) Load(ctx context.Context, script io.Reader, entries []Entry, retry bool) ([]Failure, error) {
	run := &loading{Loader: l, reader: newReader(script), entries: map[int]Entry{}, retry: retry}
	for _, e := range entries {
		run.entries[e.ID] = e
	}

	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		s, err := run.reader.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}

		if err := run.take(ctx, s); err != nil {
			return nil, fmt.Errorf("restore entry %d of the dump: %w", s.entry, err)
		}
	}

	if !run.reader.atEnd {
		return nil, &Error{Line: run.reader.line, Message: "the script has no end", err: errCutOff}
	}

	return run.failures, run.end(ctx)
}

// loading is one script.
type loading struct {
	*Loader
	reader   *reader
	entries  map[int]Entry
	retry    bool
	failures []Failure
	settings strings.Builder // statements in the script's head
	postData bool            // the rows are over
	holding  bool

	// The current entry.
	current Entry
	text    strings.Builder // statements that are not executed yet
	first   string          // how the first statement starts
	open    bool            // in parts, in a transaction
	cause   *pgconn.PgError // why a part failed
}

// take executes a statement, or keeps it until its entry ends.
func (l *loading) take(ctx context.Context, s statement) error {
	if s.command {
		return nil // \restrict
	}

	word := s.Words[0]
	if s.entry == 0 && word != "set" {
		return nil // the search path
	}

	// pg_restore prints settings before the comment of the entry that they are for.
	if s.entry != l.current.ID || word == "set" {
		if err := l.end(ctx); err != nil {
			return err
		}
		l.current = l.entries[s.entry]
		l.current.ID = s.entry
	}

	if word != "set" && l.holds() {
		if word == "copy" {
			_, err := io.Copy(io.Discard, l.reader.data())
			return err
		}
		return nil
	}

	switch word {
	case "set": // an unknown one belongs to another PostgreSQL version
		rejection, err := l.rejected(l.exec(ctx, s.Text))
		if s.entry == 0 && rejection == nil {
			l.settings.WriteString(s.Text + separator)
		}

		return err
	case "copy":
		return l.copy(ctx, s)
	case "begin", "commit": // around large objects
		return nil
	}

	l.text.WriteString(s.Text)
	l.text.WriteString(separator)
	if l.text.Len() < maxEntryText {
		return nil
	}

	return l.part(ctx)
}

// holds reports whether the current entry is left to Held.
func (l *loading) holds() bool {
	if l.current.PostData && !l.postData {
		l.postData, l.holding = true, l.HoldPostData && len(l.failures) > 0
	}
	if !l.holding {
		return false
	}

	if n := len(l.Held); n == 0 || l.Held[n-1].ID != l.current.ID {
		l.Held = append(l.Held, l.current)
	}

	return true
}

// exec executes statements and discards their rows.
func (l *loading) exec(ctx context.Context, sql string) error {
	results := l.Conn.Exec(ctx, sql)
	for results.NextResult() {
		if _, err := results.ResultReader().Close(); err != nil {
			break
		}
	}

	return results.Close()
}

// rejected separates a statement that PostgreSQL rejected from an error after which it can't go on.
func (l *loading) rejected(err error) (*pgconn.PgError, error) {
	p, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || l.Conn.IsClosed() {
		return nil, err
	}

	switch p.Code[:min(2, len(p.Code))] {
	case "53", "58": // insufficient_resources, system_error
		return nil, err
	}

	return p, nil
}

// begin begins a transaction with a search path. User code in an earlier one may have changed the
// session's role and settings.
func (l *loading) begin(path string) string {
	return "begin;reset role;" + l.settings.String() + "set local search_path to " + path + ";"
}

// copy executes a COPY with its rows.
func (l *loading) copy(ctx context.Context, s statement) error {
	rows := l.reader.data()
	cause, err := l.rejected(l.copyRows(ctx, rows, s.Text))
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, rows); err != nil { // that PostgreSQL has not read
		return err
	}

	l.first = s.Text
	if cause != nil {
		l.fail(cause)
		return l.exec(ctx, "rollback")
	}

	return nil
}

func (l *loading) copyRows(ctx context.Context, rows *copyData, sql string) error {
	if err := l.exec(ctx, l.begin(l.dataPath())); err != nil {
		return err
	}

	_, err := l.Conn.CopyFrom(ctx, rows, sql)
	if rows.err != nil && !errors.Is(rows.err, io.EOF) { // PostgreSQL repeats it
		return fmt.Errorf("read rows: %w", errors.Join(errCutOff, rows.err))
	}
	if err != nil {
		return err
	}

	return l.exec(ctx, "commit")
}

// dataPath returns the search path for an entry that is executed once.
func (l *loading) dataPath() string {
	if l.retry {
		return l.WidePath(l.current)
	}
	return SearchPath
}

// part executes a long entry's statements so far.
func (l *loading) part(ctx context.Context) error {
	sql := l.text.String()
	l.text.Reset()
	if l.cause != nil {
		return nil
	}

	if !l.open {
		l.open, l.first = true, sql
		sql = l.begin(l.dataPath()) + sql
	}

	var err error
	l.cause, err = l.rejected(l.exec(ctx, sql))

	return err
}

// end executes the current entry's remaining statements, and ends it.
func (l *loading) end(ctx context.Context) error {
	defer func() {
		l.text.Reset()
		l.first, l.open, l.cause = "", false, nil
	}()

	if !l.open {
		if l.text.Len() == 0 {
			return nil
		}

		l.first = l.text.String()
		return l.define(ctx, l.first)
	}

	if err := l.part(ctx); err != nil {
		return err
	}

	if l.cause == nil {
		var err error
		if l.cause, err = l.rejected(l.exec(ctx, "commit")); err != nil || l.cause == nil {
			return err
		}
	}

	l.fail(l.cause)
	return l.exec(ctx, "rollback")
}

func (l *loading) fail(cause *pgconn.PgError) {
	text := strings.TrimSpace(strings.ReplaceAll(l.first, separator, ";\n"))
	if len(text) > maxFailedStatement {
		text = strings.ToValidUTF8(text[:maxFailedStatement], "") + " …"
	}

	l.failures = append(l.failures, Failure{l.current, text, cause})
}

// attemptAt is an attempt to execute an entry.
type attemptAt struct {
	path   string
	verify bool // the definition must equal the dump's
}

// attempts returns the attempts to execute an entry.
func (l *loading) attempts() []attemptAt {
	wide := attemptAt{path: l.WidePath(l.current)}
	switch l.current.Desc {
	case "INDEX", "CONSTRAINT", "CHECK CONSTRAINT", "FK CONSTRAINT":
		// Its own expression is looked up as well.
		return []attemptAt{{SearchPath, true}, {noPath, false}, {SearchPath, false}, wide}
	case "MATERIALIZED VIEW DATA":
		return []attemptAt{{SearchPath, false}, wide}
	}

	return []attemptAt{{noPath, false}, {SearchPath, false}, wide}
}

// define executes a whole entry. If all attempts fail, it reports the cause under the project's
// path, which is the user's.
func (l *loading) define(ctx context.Context, sql string) error {
	var cause *pgconn.PgError
	for _, a := range l.attempts() {
		rejection, err := l.rejected(l.attempt(ctx, a, sql))
		if err == nil && rejection == nil {
			return nil
		}
		if rolledBack := l.exec(ctx, "rollback"); err == nil {
			err = rolledBack
		}
		if err != nil && !errors.Is(err, errOtherDefinition) {
			return err
		}

		if rejection != nil && (cause == nil || a.path == SearchPath) {
			cause = rejection
		}
	}

	l.fail(cause)
	return nil
}

// errOtherDefinition reports an index or constraint whose names mean other objects under a search
// path.
var errOtherDefinition = errors.New("the definition differs from the dump's")

func (l *loading) attempt(ctx context.Context, a attemptAt, sql string) error {
	if !a.verify {
		return l.exec(ctx, l.begin(a.path)+sql+"commit")
	}

	if err := l.exec(ctx, l.begin(a.path)+sql); err != nil {
		return err
	}

	same, err := l.verify(ctx, sql)
	if err != nil {
		return err
	}
	if !same {
		return errOtherDefinition
	}

	return l.exec(ctx, "commit")
}

// selectDefinitions returns the definitions with expressions that the transaction has created, as
// pg_dump prints them.
const selectDefinitions = `
	set local search_path to '';
	select pg_catalog.pg_get_indexdef(i.indexrelid) from pg_catalog.pg_index i
	where i.xmin = pg_catalog.pg_current_xact_id()::pg_catalog.xid
		and (i.indexprs is not null or i.indpred is not null) and not exists (
			select from pg_catalog.pg_constraint c where c.conindid = i.indexrelid)
	union all
	select pg_catalog.pg_get_constraintdef(c.oid) from pg_catalog.pg_constraint c
	where c.xmin = pg_catalog.pg_current_xact_id()::pg_catalog.xid and c.contype in ('c', 'x')`

// verify reports whether a dump's statements contain the definitions that they have created.
func (l *loading) verify(ctx context.Context, sql string) (bool, error) {
	results, err := l.Conn.Exec(ctx, selectDefinitions).ReadAll()
	if err != nil {
		return false, err
	}

	for _, row := range results[len(results)-1].Rows {
		if !strings.Contains(sql, string(row[0])) {
			return false, nil
		}
	}

	return true, nil
}
