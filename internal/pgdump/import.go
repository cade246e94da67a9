// Package pgdump imports pg_dump's plain dumps into a project's database: SQL statements, and COPY
// with rows. It does what a dump needs from psql, without commands that touch the machine.
//
// Dumps come from databases with other owners, roles and extensions. Rules decide about each
// statement by its text alone: it is executed, changed, or left out, and the report names its line.
// Everything runs with the rights of the connection, which PostgreSQL enforces.
package pgdump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/sqllex"
)

// Statements are sent in batches, since each round trip costs as much as a small statement.
const (
	batchBytes      = 64 << 10
	batchStatements = 200

	separator = "\n;" // a statement can end in a line comment
)

// setSearchPath sets a project's search path. pg_dump's dumps set an empty one.
const setSearchPath = "set search_path to " + SearchPath

// maxNotes bounds a report's notes.
const maxNotes = 100_000

// Options select how a dump is imported.
type Options struct {
	// Separately commits each statement by itself instead of the whole dump.
	Separately bool
	// ExcludeSchemas are schemas to leave out.
	ExcludeSchemas []string
	// Skip names objects to leave out: schema.name, and schema.table.name for a trigger, rule,
	// policy or constraint.
	Skip []string
	// Install installs an extension. If it returns an [*UnavailableError], the extension is left
	// out.
	Install func(ctx context.Context, name string) error
}

// UnavailableError is the reason why a project can't have an extension.
type UnavailableError struct{ Reason string }

// Error returns the reason.
func (e *UnavailableError) Error() string { return e.Reason }

// Report is an import's result.
type Report struct {
	Statements int      `json:"statements"` // executed
	Rows       int64    `json:"rows"`       // stored by COPY and INSERT
	Extensions []string `json:"extensions"` // installed, also if the import fails later
	Notes      []Note   `json:"notes"`
	Omitted    int      `json:"omittedNotes"` // notes beyond the limit
}

// Note is a statement that was left out or changed.
type Note struct {
	Line  int    `json:"line"`
	Topic Topic  `json:"topic"`
	Text  string `json:"text"`
}

// Import executes a plain dump on a connection, in one transaction by default. It returns an
// [*Error] for a statement that fails or can't be read. The report is valid then too. After an
// error, the caller closes the session, which rolls back.
func Import(ctx context.Context, conn *pgconn.PgConn, dump io.Reader, o Options) (Report, error) {
	i := importer{conn: conn, reader: newReader(dump), rules: newRules(o), options: o}
	err := i.run(ctx)
	slices.SortStableFunc(i.report.Notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })

	return i.report, err
}

type importer struct {
	conn    *pgconn.PgConn
	reader  *reader
	rules   *rules
	options Options
	report  Report

	inTx  bool // a transaction has begun
	batch []statement
	size  int // bytes in the batch
	last  []statement

	attempts     []attempted
	triggers     []attempted // on auth.users
	usersMissing bool        // rows refer to end users that the project does not have
}

func (i *importer) run(ctx context.Context) error {
	if _, err := i.conn.Exec(ctx, setSearchPath).ReadAll(); err != nil {
		return err
	}

	for {
		if err := ctx.Err(); err != nil {
			return err
		}

		s, err := i.reader.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}

		if err := i.apply(ctx, s, i.rules.decide(s)); err != nil {
			return err
		}
	}

	if name := i.rules.unknownSkip(); name != "" {
		return fmt.Errorf("the dump has no object %s to skip: name it as schema.name", name)
	}

	for _, s := range i.last {
		if err := i.addToBatch(ctx, s); err != nil {
			return err
		}
	}

	if err := i.flush(ctx); err != nil {
		return err
	}

	for _, a := range slices.Concat(i.attempts, i.triggers) {
		if err := i.attempt(ctx, a); err != nil {
			return err
		}
	}
	if !i.inTx {
		return nil
	}

	_, err := i.conn.Exec(ctx, "commit").ReadAll() // a deferred constraint can fail here
	if _, ok := errors.AsType[*pgconn.PgError](err); err != nil && !ok {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}

	return failed(statement{line: i.reader.line, Statement: sqllex.Statement{Text: "commit"}}, err)
}

// apply carries out a verdict on a statement.
func (i *importer) apply(ctx context.Context, s statement, v verdict) error {
	if v.action == refuse {
		return &Error{Line: s.line, Statement: s.Text, Message: v.notes[0].text}
	}

	switch v.action {
	case attempt, attemptKey:
		s.Text = v.sql
		i.attempts = append(i.attempts, attempted{s, v})
		return nil
	case attemptTrigger:
		s.Text = v.sql
		i.triggers = append(i.triggers, attempted{s, v})
		return nil
	}

	if v.sql != "" {
		s.Text = v.sql
	}
	switch v.action {
	case tryRun:
		return i.tryRun(ctx, s, v)
	case tryRows:
		return i.tryRows(ctx, s, v)
	case stage:
		return i.stage(ctx, s, v)
	}

	for _, n := range v.notes {
		i.note(s, n)
	}

	switch v.action {
	case run:
		return i.addToBatch(ctx, s)
	case runLast:
		i.last = append(i.last, s)
	case set:
		return i.applySetting(ctx, s)
	case copyRows:
		return i.copy(ctx, s)
	case nameSecrets:
		return i.nameSecrets(s, v.columns)
	case skipRows:
		_, err := io.Copy(io.Discard, i.reader.data())
		return err
	case extension:
		return i.install(ctx, s, v)
	}

	return nil
}

func (i *importer) note(s statement, n note) {
	if len(i.report.Notes) == maxNotes {
		i.report.Omitted++
		return
	}

	i.report.Notes = append(i.report.Notes, Note{Line: s.line, Topic: n.topic, Text: n.text})
}

// addToBatch executes a statement, perhaps later with others.
func (i *importer) addToBatch(ctx context.Context, s statement) error {
	i.batch = append(i.batch, s)
	i.size += len(s.Text)

	if i.options.Separately || i.size >= batchBytes || len(i.batch) >= batchStatements {
		return i.flush(ctx)
	}

	return nil
}

// flush executes the batch.
func (i *importer) flush(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	if err := i.begin(ctx); err != nil {
		return err
	}

	texts := make([]string, len(i.batch))
	for n, s := range i.batch {
		texts[n] = s.Text
	}

	batch := i.batch
	i.batch, i.size = i.batch[:0], 0

	results := i.conn.Exec(ctx, strings.Join(texts, separator))
	count := 0
	for results.NextResult() {
		tag, err := results.ResultReader().Close()
		if err != nil {
			break
		}

		count++
		if tag.Insert() {
			i.report.Rows += tag.RowsAffected()
		}
	}

	err := results.Close()
	i.report.Statements += count

	return failedInBatch(batch, count, err)
}

// failedInBatch is [failed] for the statement in a batch that failed after count others.
func failedInBatch(batch []statement, count int, err error) error {
	p, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return failed(batch[min(count, len(batch)-1)], err)
	}

	at := *p // its position counts from the batch's start
	if at.Position == 0 {
		return failed(batch[min(count, len(batch)-1)], &at)
	}

	for _, s := range batch {
		length := int32(utf8.RuneCountInString(s.Text) + len(separator))
		if at.Position <= length {
			return failed(s, &at)
		}

		at.Position -= length
	}

	return failed(batch[len(batch)-1], &at)
}

// begin begins the transaction, unless statements are executed separately.
func (i *importer) begin(ctx context.Context) error {
	if i.inTx || i.options.Separately {
		return nil
	}

	_, err := i.conn.Exec(ctx, "begin").ReadAll()
	i.inTx = err == nil

	return err
}

// applySetting executes a session setting. It leaves out a setting that this server does not know
// or permit.
func (i *importer) applySetting(ctx context.Context, s statement) error {
	rejection, err := i.try(ctx, s)
	if rejection != nil {
		i.note(s, note{Settings, s.Text + ": " + rejection.Message})
	}

	return err
}

// copy executes a COPY with its rows.
func (i *importer) copy(ctx context.Context, s statement) error {
	if err := i.flush(ctx); err != nil {
		return err
	}
	if err := i.begin(ctx); err != nil {
		return err
	}

	rows := i.reader.data()
	tag, err := i.conn.CopyFrom(ctx, rows, s.Text)
	if rows.err != nil && !errors.Is(rows.err, io.EOF) { // PostgreSQL repeats it
		return rows.err
	}
	if err != nil {
		return failedRow(s, rows.firstLine(), err)
	}

	i.report.Statements++
	i.report.Rows += tag.RowsAffected()

	// A COPY that is refused without an error may leave rows behind.
	_, err = io.Copy(io.Discard, rows)
	return err
}

// install installs an extension outside the transaction, which has not begun yet if the extensions
// come first, as pg_dump writes them.
func (i *importer) install(ctx context.Context, s statement, v verdict) error {
	if i.inTx {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}

	err := i.options.Install(ctx, v.extension)
	if u, ok := errors.AsType[*UnavailableError](err); ok {
		if v.schema != "" && v.schema != "public" && v.schema != "extensions" && v.schema != "pg_catalog" {
			i.rules.omittedSchemas[v.schema] = true // it has nothing but the extension
		}
		if v.extension == "pg_cron" {
			i.rules.omittedSchemas["cron"] = true
		}

		i.rules.omissions.implicit = true // its members are not known
		i.note(s, note{Extensions, "extension " + v.extension + ": " + u.Reason})
		return nil
	}
	if err != nil {
		return fmt.Errorf("line %d: install the extension %s: %w", s.line, v.extension, err)
	}

	i.report.Extensions = append(i.report.Extensions, v.extension)

	names, err := i.members(ctx, v.extension)
	if err != nil {
		return err
	}

	schema := cmp.Or(v.schema, "extensions")
	members := i.rules.members[schema]
	if members == nil {
		members = map[string]bool{}
		i.rules.members[schema] = members
	}
	for _, name := range names {
		members[name] = true
	}

	return nil
}

// selectMembers returns the names of an extension's members.
const selectMembers = `
	select coalesce(t.typname, p.proname, o.oprname, c.relname, oc.opcname, f.opfname, d.dictname, k.cfgname)::text
	from pg_catalog.pg_depend m
	join pg_catalog.pg_extension e on e.oid = m.refobjid
	left join pg_catalog.pg_type t on m.classid = 'pg_catalog.pg_type'::pg_catalog.regclass and t.oid = m.objid
	left join pg_catalog.pg_proc p on m.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = m.objid
	left join pg_catalog.pg_operator o on m.classid = 'pg_catalog.pg_operator'::pg_catalog.regclass and o.oid = m.objid
	left join pg_catalog.pg_class c on m.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and c.oid = m.objid
	left join pg_catalog.pg_opclass oc on m.classid = 'pg_catalog.pg_opclass'::pg_catalog.regclass and oc.oid = m.objid
	left join pg_catalog.pg_opfamily f on m.classid = 'pg_catalog.pg_opfamily'::pg_catalog.regclass and f.oid = m.objid
	left join pg_catalog.pg_ts_dict d on m.classid = 'pg_catalog.pg_ts_dict'::pg_catalog.regclass and d.oid = m.objid
	left join pg_catalog.pg_ts_config k on m.classid = 'pg_catalog.pg_ts_config'::pg_catalog.regclass and k.oid = m.objid
	where m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass and m.deptype = 'e' and e.extname = $1`

func (i *importer) members(ctx context.Context, extension string) ([]string, error) {
	result := i.conn.ExecParams(ctx, selectMembers, [][]byte{[]byte(extension)}, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, fmt.Errorf("read the members of the extension %s: %w", extension, result.Err)
	}

	var names []string
	for _, row := range result.Rows {
		if row[0] != nil {
			names = append(names, string(row[0]))
		}
	}

	return names, nil
}
