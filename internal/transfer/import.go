package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

// errDryRun rolls a dry run back.
var errDryRun = errors.New("dry run")

// ImportTable creates a table from a file. It has the file's columns, each with the narrowest type
// that accepts all values. The file is read twice: for the types, and for the rows. It fails with
// Invalid on schema or name, with Conflict on name if the name is taken, and with Unprocessable on
// file for invalid rows.
func ImportTable(
	ctx context.Context, p *projectdb.Project, schemaName, name string, file io.ReadSeeker, o Options,
) (Imported, error) {
	release, err := reserveMemory(ctx, p.Key(ctx), file, o)
	if err != nil {
		return Imported{}, err
	}
	defer release()

	survey, err := readFile(ctx, file, o)
	if err == nil {
		err = survey.check()
	}
	if err != nil {
		return Imported{}, err
	}

	columns, notes := survey.newColumns()
	n := schema.NewTable{Schema: schemaName, Name: name}
	headers := make([]string, len(columns))
	for i, c := range columns {
		headers[i] = c.Header
		n.Columns = append(n.Columns, schema.NewColumn{Name: c.Name, Type: c.Type})
	}

	result, err := inTx(ctx, p, file, o, func(
		ctx context.Context, tx pgx.Tx,
	) (plan, error) {
		t, err := schema.CreatePlainTable(ctx, tx, n)
		audit.Created(ctx, t.FullName())

		return plan{table: t, columns: columns, headers: headers, notes: notes, hint: survey.headerHint()}, err
	})

	if o.DryRun {
		result.TableID = nil
	}

	return result, err
}

// ImportRows adds a file's rows to ref's table. The header, or the JSON objects' members, name
// table columns; other columns get their defaults. Without a header, the values belong to all
// columns in order, except generated ones. It fails as [schema.HoldTable] does, and with
// Unprocessable on file.
func ImportRows(
	ctx context.Context, p *projectdb.Project, ref string, file io.ReadSeeker, o Options,
) (Imported, error) {
	release, err := reserveMemory(ctx, p.Key(ctx), file, o)
	if err != nil {
		return Imported{}, err
	}
	defer release()

	return inTx(ctx, p, file, o, func(ctx context.Context, tx pgx.Tx) (plan, error) {
		t, all, err := schema.LockTable(ctx, tx, p.UUID, ref)
		if err != nil {
			return plan{}, err
		}

		return planRows(ctx, file, o, t, all)
	})
}

// plan is how a file's rows are stored in a table.
type plan struct {
	table   schema.Table
	columns []ImportedColumn
	headers []string // the file's known columns, by position
	notes   []Note
	hint    string // remedy for rows with more or fewer values than the header
}

// stored returns the columns without the skipped ones.
func (p plan) stored() []ImportedColumn {
	return slices.DeleteFunc(slices.Clone(p.columns), func(c ImportedColumn) bool { return c.skipped })
}

// planRows matches a file with a table's columns.
func planRows(
	ctx context.Context, file io.ReadSeeker, o Options, t schema.Table, all []schema.BulkColumn,
) (plan, error) {
	p := plan{table: t}
	var err error
	switch {
	case o.Format == JSONL:
		p.columns, p.notes, err = matchMembers(ctx, file, o, all)
	case o.Header:
		p.columns, p.notes, err = matchHeader(ctx, file, o, all)
	default:
		for _, c := range all {
			if !c.Generated {
				p.columns = append(p.columns, newImportedColumn(c, ""))
			}
		}
	}
	if err != nil {
		return p, err
	}

	for _, c := range p.columns {
		p.headers = append(p.headers, c.Name)
	}

	reads := slices.ContainsFunc(p.columns, func(c ImportedColumn) bool { return c.number || c.date })
	if o.Format == JSONL || !reads { // JSON has one way to write numbers
		return p, nil
	}

	survey, err := readFile(ctx, file, o)
	if err != nil {
		return p, err
	}
	p.notes, p.hint = append(p.notes, survey.setReadings(p.columns)...), survey.headerHint()

	return p, nil
}

// matchHeader returns the table columns that the header names. Generated ones, which an export has
// too, are skipped.
func matchHeader(
	ctx context.Context, file io.ReadSeeker, o Options, all []schema.BulkColumn,
) ([]ImportedColumn, []Note, error) {
	s, err := rewind(ctx, file, o, nil)
	if err != nil {
		return nil, nil, err
	}

	names := s.names()
	for o.Format == XLSX && len(names) > 0 && names[len(names)-1] == "" { // empty cells in a formatted row
		names = names[:len(names)-1]
	}

	var columns []ImportedColumn
	var notes []Note
	for i, header := range names {
		at := slices.IndexFunc(all, func(c schema.BulkColumn) bool { return c.Name == header })
		if at < 0 {
			return nil, nil, fault.OnField(fault.Unprocessable, "file", "unknown_column",
				"has the header %q, which is not a column of the table; if another line names the columns, import with "+
					"header_line", fault.Clip(header))
		}
		if slices.Contains(names[:i], header) {
			return nil, nil, fault.OnField(fault.Unprocessable, "file", "duplicate", "has the header %q twice", header)
		}

		c := newImportedColumn(all[at], header)
		if c.skipped = all[at].Generated; c.skipped {
			notes = append(notes, skippedColumn(c.Name))
		}
		columns = append(columns, c)
	}

	if !slices.ContainsFunc(columns, func(c ImportedColumn) bool { return !c.skipped }) {
		return nil, nil, emptyFile()
	}

	return columns, notes, nil
}

func skippedColumn(name string) Note {
	return Note{Column: &name, Code: "generated_column", Message: "is skipped, since the database computes it"}
}

// matchMembers returns the columns that have members anywhere in JSON lines.
func matchMembers(
	ctx context.Context, file io.ReadSeeker, o Options, all []schema.BulkColumn,
) (columns []ImportedColumn, notes []Note, err error) {
	s, err := rewind(ctx, file, o, nil)
	if err != nil {
		return nil, nil, err
	}

	var bad *Rejected // the first
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}

		r, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, translateFileError(err)
		}

		bad = cmp.Or(bad, r.bad)
	}

	count := 0
	for _, column := range all {
		if !slices.Contains(s.names(), column.Name) {
			continue
		}

		c := newImportedColumn(column, column.Name)
		if c.skipped = column.Generated; c.skipped {
			notes = append(notes, skippedColumn(c.Name))
		} else {
			count++
		}
		columns = append(columns, c)
	}

	switch {
	case count == 0 && bad != nil:
		return nil, nil, bad.fatal(nil, 0)
	case count == 0:
		return nil, nil, fault.OnField(fault.Unprocessable, "file", "unknown_column",
			"has no value for any of the table's columns")
	}

	return columns, notes, nil
}

func emptyFile() error {
	return fault.OnField(fault.Unprocessable, "file", "required", "must not be empty")
}

// rewind opens a file from its beginning.
func rewind(ctx context.Context, file io.ReadSeeker, o Options, columns []string) (source, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind a file to import: %w", err)
	}

	if o.Format == XLSX {
		s, err := openRows(ctx, file, o, columns)
		return s, translateFileError(err)
	}

	s, err := open(file, o, columns)
	return s, translateFileError(err)
}

// openRows returns a sheet's rows.
func openRows(ctx context.Context, file io.ReadSeeker, o Options, columns []string) (source, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("measure a file to import: %w", err)
	}

	at, ok := file.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("open a workbook: %T is not an io.ReaderAt", file)
	}

	s, err := openSheet(ctx, at, size, o.Sheet)
	if err != nil {
		return nil, err
	}

	if err := s.skipTo(o.HeaderLine); err != nil {
		return nil, err
	}
	if o.Header {
		err = readHeader(s, &s.header)
	}

	if columns != nil {
		s.columns = len(columns)
	}

	return s, err
}

// translateFileError translates errors from reading a file.
func translateFileError(err error) error {
	if errors.Is(err, errTooLong) {
		return fault.OnField(fault.Unprocessable, "file", "too_long",
			"has a row of more than %d bytes, or an unclosed quote", maxRecord)
	}
	if errors.Is(err, errTooLarge) {
		return fault.OnField(fault.Unprocessable, "file", "too_large",
			"has parts that are too large when decompressed")
	}
	if errors.Is(err, errNoLine) {
		return fault.OnField(fault.Invalid, "header_line", "not_found", "must be a line of the file")
	}
	if errors.Is(err, errNoSheet) {
		return fault.OnField(fault.Invalid, "sheet", "not_found", "must be the name of one of the workbook's sheets")
	}
	if errors.Is(err, errWorkbook) {
		return fault.OnField(fault.Unprocessable, "file", "malformed", "is not a valid workbook")
	}

	return err
}

// inTx stores a file's rows in one transaction, in the table that prepare creates or finds.
func inTx(
	ctx context.Context, p *projectdb.Project, file io.ReadSeeker, o Options,
	prepare func(context.Context, pgx.Tx) (plan, error),
) (Imported, error) {
	importCtx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()

	var result Imported
	err := audit.Write(importCtx, p.Owner(), func(tx pgx.Tx) error {
		if err := schema.ApplySettings(importCtx, tx); err != nil {
			return err
		}

		plan, err := prepare(importCtx, tx)
		if err != nil {
			return err
		}

		result = Imported{Table: plan.table.FullName(), TableID: &plan.table.ID, DryRun: o.DryRun}
		if err := result.load(importCtx, tx, plan, file, o); err != nil {
			return err
		}

		if o.DryRun {
			return errDryRun
		}

		return nil
	})
	if errors.Is(err, errDryRun) { // audited all the same, since the project's triggers ran
		return result, p.InTx(ctx, func(pgx.Tx) error { return nil })
	}

	if state := pg.State(err); blamesUser(state) && !isFaultError(err) { // a deferred constraint
		return Imported{}, fault.New(fault.Unprocessable, "the rows violate a deferred constraint of the table").
			WithCode("refused").WithCause(err)
	}

	return result, err
}

func isFaultError(err error) bool {
	_, ok := errors.AsType[*fault.Error](err)
	return ok
}

// load stores the rows.
func (d *Imported) load(ctx context.Context, tx pgx.Tx, p plan, file io.ReadSeeker, o Options) error {
	s, err := rewind(ctx, file, o, p.headers)
	if err != nil {
		return err
	}

	l, err := newLoader(ctx, tx, p, o)
	if err != nil {
		return err
	}

	for {
		r, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return translateFileError(err)
		}
		if err := l.add(ctx, r); err != nil {
			return err
		}
	}

	if err := l.flush(ctx); err != nil {
		return err
	}
	if !o.DryRun {
		if err := l.advanceSequences(ctx); err != nil {
			return err
		}
	}

	slices.SortFunc(l.reported, func(a, b Rejected) int { return cmp.Compare(a.Line, b.Line) })
	d.Columns, d.Rows, d.Rejected, d.Lines = p.stored(), l.rows, l.rejected, l.reported
	d.Notes = append([]Note{}, p.notes...)
	if b, ok := s.(*xlsxSource); ok {
		d.Notes = append(d.Notes, b.notes()...)
	}

	return nil
}
