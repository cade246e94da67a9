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

// ImportTable creates a table from a file. Its columns are those of the file, each of the narrowest
// type that accepts all values. The file is read twice: for the types, and for the rows. It fails
// with Invalid on schema or name, with Conflict on name if the name is taken, and with
// Unprocessable on file for invalid rows.
func ImportTable(
	ctx context.Context, p *projectdb.Project, schemaName, name string, file io.ReadSeeker, o Options,
) (Imported, error) {
	release, err := reserveMemory(ctx, p.UUID, file, o)
	if err != nil {
		return Imported{}, err
	}
	defer release()

	columns, err := detectColumns(ctx, file, o)
	if err != nil {
		return Imported{}, err
	}

	n := schema.NewTable{Schema: schemaName, Name: name}
	headers := make([]string, len(columns))
	for i, c := range columns {
		headers[i] = c.Header
		n.Columns = append(n.Columns, schema.NewColumn{Name: c.Name, Type: c.Type})
	}

	imported, err := inTx(ctx, p, file, o, func(
		ctx context.Context, tx pgx.Tx,
	) (schema.Table, []ImportedColumn, []string, error) {
		t, err := schema.CreatePlainTable(ctx, tx, n)
		audit.Created(ctx, t.FullName())

		return t, columns, headers, err
	})

	if o.DryRun {
		imported.TableID = nil
	}

	return imported, err
}

// ImportRows adds the rows of a file to the table of ref. The header, or the members of JSON
// objects, name columns of the table; other columns get their defaults. Without a header, the
// values are those of all columns in order, except generated ones. It fails as [schema.HoldTable]
// does, and with Unprocessable on file.
func ImportRows(
	ctx context.Context, p *projectdb.Project, ref string, file io.ReadSeeker, o Options,
) (Imported, error) {
	release, err := reserveMemory(ctx, p.UUID, file, o)
	if err != nil {
		return Imported{}, err
	}
	defer release()

	return inTx(ctx, p, file, o, func(
		ctx context.Context, tx pgx.Tx,
	) (schema.Table, []ImportedColumn, []string, error) {
		t, all, err := schema.LockTable(ctx, tx, p.UUID, ref)
		if err != nil {
			return t, nil, nil, err
		}

		columns, err := matchHeader(ctx, file, o, all)
		headers := make([]string, len(columns))
		for i, c := range columns {
			headers[i] = c.Name
		}

		return t, columns, headers, err
	})
}

// matchHeader returns the columns of a table that have values in the file.
func matchHeader(
	ctx context.Context, file io.ReadSeeker, o Options, all []schema.BulkColumn,
) ([]ImportedColumn, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(c schema.BulkColumn) bool { return c.Generated })
	var columns []ImportedColumn

	if o.Format == JSONL {
		return matchMembers(ctx, file, o, all)
	}

	if !o.Header {
		for _, c := range all {
			columns = append(columns, ImportedColumn{Name: c.Name, date: c.Date})
		}
		return columns, nil
	}

	s, err := rewind(ctx, file, o, nil)
	if err != nil {
		return nil, err
	}

	names := s.names()
	for o.Format == XLSX && len(names) > 0 && names[len(names)-1] == "" { // empty cells of a formatted row
		names = names[:len(names)-1]
	}

	for i, header := range names {
		known := slices.IndexFunc(all, func(c schema.BulkColumn) bool { return c.Name == header })
		if known < 0 {
			return nil, fault.OnField(fault.Unprocessable, "file", "unknown_column",
				"has the header %q, which is not a column of the table", fault.Clip(header))
		}
		if slices.Contains(names[:i], header) {
			return nil, fault.OnField(fault.Unprocessable, "file", "duplicate", "has the header %q twice", header)
		}

		columns = append(columns, ImportedColumn{Name: header, Header: header, date: all[known].Date})
	}

	if len(columns) == 0 {
		return nil, emptyFile()
	}

	return columns, nil
}

// matchMembers returns the columns that have members anywhere in lines of JSON.
func matchMembers(
	ctx context.Context, file io.ReadSeeker, o Options, all []schema.BulkColumn,
) ([]ImportedColumn, error) {
	s, err := rewind(ctx, file, o, nil)
	if err != nil {
		return nil, err
	}

	var bad *Rejected // the first
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		r, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, translateFileError(err)
		}

		bad = cmp.Or(bad, r.bad)
	}

	var columns []ImportedColumn
	for _, c := range all {
		if slices.Contains(s.names(), c.Name) {
			columns = append(columns, ImportedColumn{Name: c.Name, Header: c.Name, date: c.Date})
		}
	}

	switch {
	case len(columns) == 0 && bad != nil:
		return nil, bad.fatal(nil, 0)
	case len(columns) == 0:
		return nil, fault.OnField(fault.Unprocessable, "file", "unknown_column",
			"has no value for any of the table's columns")
	}

	return columns, nil
}

func emptyFile() error {
	return fault.OnField(fault.Unprocessable, "file", "required", "must not be empty")
}

// rewind opens a file from its beginning.
func rewind(ctx context.Context, file io.ReadSeeker, o Options, known []string) (source, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind a file to import: %w", err)
	}

	if o.Format == XLSX {
		s, err := openRows(ctx, file, o, known)
		return s, translateFileError(err)
	}

	s, err := open(file, o, known)
	return s, translateFileError(err)
}

// openRows returns the rows of a workbook's sheet.
func openRows(ctx context.Context, file io.ReadSeeker, o Options, known []string) (source, error) {
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

	if o.Header {
		err = readHeader(s, &s.header)
	}

	if known != nil {
		s.columns = len(known)
	}

	return s, err
}

// translateFileError translates errors of reading a file.
func translateFileError(err error) error {
	if errors.Is(err, errTooLong) {
		return fault.OnField(fault.Unprocessable, "file", "too_long",
			"has a row of more than %d bytes, or an unclosed quote", maxRecord)
	}
	if errors.Is(err, errTooLarge) {
		return fault.OnField(fault.Unprocessable, "file", "too_large",
			"has parts that are too large when decompressed")
	}
	if errors.Is(err, errNoSheet) {
		return fault.OnField(fault.Invalid, "sheet", "not_found", "must be the name of one of the workbook's sheets")
	}
	if errors.Is(err, errWorkbook) {
		return fault.OnField(fault.Unprocessable, "file", "malformed", "is not a valid workbook")
	}

	return err
}

// detectColumns reads a whole file to detect its columns and their types.
func detectColumns(ctx context.Context, file io.ReadSeeker, o Options) ([]ImportedColumn, error) {
	s, err := rewind(ctx, file, o, nil)
	if err != nil {
		return nil, err
	}

	headers := s.names()
	var guesses []guess
	var bad *Rejected // the first
	for n := 0; ; n++ {
		r, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, translateFileError(err)
		}

		if n%batchRows == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}

		bad = cmp.Or(bad, r.bad)
		if r.bad != nil && o.Format != JSONL {
			continue
		}

		if o.Format != JSONL && headers == nil { // the first row determines the number of columns
			headers = make([]string, len(r.values))
		}

		for i := len(guesses); i < len(r.values) && (o.Format == JSONL || i < len(headers)); i++ {
			guesses = append(guesses, guess{possible: anyType})
		}

		if r.bad != nil || o.Format != JSONL && len(r.values) != len(headers) {
			continue // rejected in the second pass
		}

		for i, v := range r.values {
			guesses[i].narrow(v)
		}
	}

	if o.Format == JSONL {
		headers = s.names()
	}

	switch {
	case len(headers) == 0 && bad != nil:
		return nil, bad.fatal(nil, 0)
	case len(headers) == 0:
		return nil, emptyFile()
	case len(headers) > maxColumns:
		return nil, fault.OnField(fault.Unprocessable, "file", "too_many", "has more than %d columns", maxColumns)
	}

	columns := make([]ImportedColumn, len(headers))
	for i, name := range columnNames(headers) {
		columns[i] = ImportedColumn{Name: name, Header: headers[i], Type: "text"}
		if i < len(guesses) {
			columns[i].Type = guesses[i].name()
		}
	}

	return columns, nil
}

// inTx stores a file's rows in one transaction, in the table that prepare creates or finds. prepare
// returns the columns and their headers in the file.
func inTx(ctx context.Context, p *projectdb.Project, file io.ReadSeeker, o Options,
	prepare func(context.Context, pgx.Tx) (schema.Table, []ImportedColumn, []string, error)) (Imported, error) {
	bounded, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()

	var result Imported
	err := audit.Write(bounded, p.Owner(), func(tx pgx.Tx) error {
		if err := schema.ApplySettings(bounded, tx); err != nil {
			return err
		}

		table, columns, headers, err := prepare(bounded, tx)
		if err != nil {
			return err
		}

		result = Imported{Table: table.FullName(), TableID: &table.ID, Columns: columns, DryRun: o.DryRun}
		if err := result.load(bounded, tx, table, headers, file, o); err != nil {
			return err
		}

		if o.DryRun {
			return errDryRun
		}

		return nil
	})
	if errors.Is(err, errDryRun) { // audited all the same, since triggers of the project ran
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
func (d *Imported) load(
	ctx context.Context, tx pgx.Tx, t schema.Table, headers []string, file io.ReadSeeker, o Options,
) error {
	s, err := rewind(ctx, file, o, headers)
	if err != nil {
		return err
	}

	names := make([]string, len(d.Columns))
	for i, c := range d.Columns {
		names[i] = c.Name
	}

	l := &loader{
		tx:       tx,
		copy:     copySQL(pg.Quote(t.Schema, t.Name), names),
		columns:  d.Columns,
		skip:     o.Skip,
		reported: []Rejected{},
	}
	if l.merge, err = o.merge(ctx, tx, t, names); err != nil {
		return err
	}

	if l.merge != "" {
		l.copy = copySQL(stagingTable, names)
	}

	if l.counters, err = newCounters(ctx, tx, t, names); err != nil {
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
	d.Rows, d.Rejected, d.Lines = l.rows, l.rejected, l.reported

	return nil
}
