package pgdump

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/dialect"
)

// stagedTables are the platform tables whose rows the project's owner writes. Their triggers check
// each row.
var stagedTables = []string{endUsers, identities, buckets}

const identities = "auth.identities"

// platformRows decides about rows in stagedTables. COPY loads a temporary table first: a dump can
// have columns that the project lacks, and rows that it has.
func (r *rules) platformRows(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	name := s.Name.String()
	isWrite := slices.Contains([]string{"copy", "insert", "update", "delete"}, s.Action)
	if !isWrite || r.excludedSchemas[s.Schema()] {
		return verdict{}, false
	}

	v := leave(Schemas, "%s table %s", s.Action, name)
	if !slices.Contains(stagedTables, name) {
		if s.Action == "copy" {
			v.action = skipRows
		}
		return v, s.Schema() == "auth" // sessions, tokens, factors
	}

	v.subject, v.sql = s, ts.Text
	switch s.Action {
	case "copy":
		v.columns, v.action = copyColumns(ts, s.After), stage
		return v, v.columns != nil
	default:
		v.action = tryRows
		if name != endUsers { // a dump has identities before their users
			v.action = attempt
		}
		return v, true
	}
}

// copyColumns returns the columns in COPY … FROM stdin, or nil for another COPY.
func copyColumns(ts dialect.Tokens, i int) []string {
	var columns []string
	if ts.Raw(i) != "(" {
		return nil
	}
	for i++; i < len(ts.All) && ts.Raw(i) != ")"; i++ {
		if name := ts.Identifier(i); name != "" {
			columns = append(columns, name)
		}
	}
	if ts.Word(i+1) != "from" || ts.Word(i+2) != "stdin" {
		return nil
	}

	return columns
}

// tryRows executes a statement on platform rows at its place. It leaves out the statement if the
// platform rejects a row.
func (i *importer) tryRows(ctx context.Context, s statement, v verdict) error {
	if err := i.begin(ctx); err != nil {
		return err
	}

	rejection, err := i.try(ctx, s)
	if err != nil {
		return err
	}
	if rejection != nil {
		i.note(s, note{v.notes[0].topic, v.notes[0].text + ": " + rejection.Message})
		return nil
	}

	i.report.Statements++
	return nil
}

// stage copies a COPY's rows into a temporary table, and from there into the platform's table if
// the project lacks them.
func (i *importer) stage(ctx context.Context, s statement, v verdict) error {
	types, err := i.columnTypes(ctx, v.subject.Name.String())
	if err != nil {
		return err
	}

	var columns, texts, names, values []string
	for _, c := range v.columns {
		columns = append(columns, quote(c))
		texts = append(texts, quote(c)+" text")
		if t := types[c]; t != "" {
			names = append(names, quote(c))
			values = append(values, quote(c)+"::"+t)
		}
	}

	temporary := "pg_temp." + quote("import "+v.subject.Name.String())
	for _, sql := range []string{
		"drop table if exists " + temporary,
		"create temporary table " + strings.TrimPrefix(temporary, "pg_temp.") + " (" + strings.Join(texts, ", ") + ")",
	} {
		if err := i.addToBatch(ctx, s.with(sql)); err != nil {
			return err
		}
	}

	rows := i.report.Rows
	if err := i.copy(ctx, s.with("copy "+temporary+" ("+strings.Join(columns, ", ")+") from stdin")); err != nil {
		return err
	}
	if i.report.Rows == rows || len(names) == 0 {
		return nil
	}

	s = s.with(fmt.Sprintf("insert into %s (%s) select %s from %s on conflict (id) do nothing",
		quote(v.subject.Name...), strings.Join(names, ", "), strings.Join(values, ", "), temporary))
	if v.subject.Name.String() == identities {
		i.attempts = append(i.attempts, attempted{s, v})
		return nil
	}

	return i.tryRows(ctx, s, v)
}

// quote returns a qualified name as an identifier.
func quote(parts ...string) string {
	identifiers := make([]string, len(parts))
	for i, part := range parts {
		identifiers[i] = `"` + strings.ReplaceAll(part, `"`, `""`) + `"`
	}

	return strings.Join(identifiers, ".")
}

// with returns the statement with another text.
func (s statement) with(sql string) statement {
	s.Text = sql
	return s
}

// selectColumnTypes returns a table's writable columns, with their types.
const selectColumnTypes = `
	select a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)
	from pg_catalog.pg_attribute a
	where a.attrelid = $1::pg_catalog.text::pg_catalog.regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''`

func (i *importer) columnTypes(ctx context.Context, table string) (map[string]string, error) {
	result := i.conn.ExecParams(ctx, selectColumnTypes, [][]byte{[]byte(table)}, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, fmt.Errorf("read the columns of %s: %w", table, result.Err)
	}

	types := map[string]string{}
	for _, row := range result.Rows {
		types[string(row[0])] = string(row[1])
	}

	return types, nil
}
