package rest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/pg"
)

// cellTypes are types beside those of keys, with values in SQL.
var cellTypes = map[string][]string{
	"json": {`'{"a": "x\ny\\z", "b": [1, null]}'`, "'null'", `'"text"'`, "'1.50'",
		`'"NULL"'`, "E'{\"a\":\n1}'", "'{}'"},
	"jsonb[]": {`array['{"a\\b":"c\"d"}'::jsonb, 'null', null]`, "'{}'"},
	"xml":     {`'<a b="c">x,y</a>'`}, "point": {"'(1.5,-2)'"}, "box": {"'(1,2),(0,0)'"}, "path": {"'[(0,0),(1,1)]'"},
	"polygon": {"'((0,0),(1,1),(1,0))'"}, "circle": {"'<(0,0),1>'"}, "line": {"'{1,2,3}'"}, "lseg": {"'[(0,0),(1,1)]'"},
	"text[][]":  {`'{{"a,b","c\"d"},{NULL,"NULL"}}'`, `array[array[E'x\\y', E'a\nb']]`},
	"tsrange[]": {`'{"[\"2020-01-02 03:04:05\",)",empty}'`},
	"couple[]":  {`array[row(1, '","NULL,\')::pair]`},
	"pair[][]":  {`array[array[row(null, null)::pair]]`},
}

// hostileTexts are texts that a format of lines and fields can change.
var hostileTexts = []string{"", "NULL", "null", `""`, `"`, `\`, `\\`, `back\slash`, `\n`, `\N`, "a,b", ",", ",NULL,",
	"NULL,NULL", `x","NULL`, `"NULL"`, "a\nb", "a\r\nb", "a\rb", "\n", "\r", "\r\n", " ", " a ", "\t", "(a)", "()",
	"{a,b}", "[1]", "'", "=1+1", "-", "é", "名前🙂",
	"\u2028", "\u00a0", "\ufeffx", `{"a":"b\\c"}`, `\.`, "#", ";", "NULL ",
	"nULL", "'NULL'", "1e5", strings.Repeat(`"\`, 50)}

// TestCSVRoundTrip exports tables and imports them. Each cell comes back as it was, of all types.
func TestCSVRoundTrip(t *testing.T) {
	t.Parallel()

	all := maps.Clone(keyTypes)
	maps.Copy(all, cellTypes)
	delete(all, "color") // shown as JSON, read as JSON

	var columns, rows []string
	names := slices.Sorted(maps.Keys(all))
	for i, of := range names {
		columns = append(columns, fmt.Sprintf("c%d %s", i, of))
	}
	for n := range 20 {
		row := []string{fmt.Sprint(n)}
		for _, of := range names {
			value := "null"
			if n < len(all[of]) {
				value = fmt.Sprintf("(%s)::%s", all[of][n], of)
			}
			row = append(row, value)
		}
		rows = append(rows, "("+strings.Join(row, ",")+")")
	}

	var texts []string
	for i, s := range hostileTexts {
		texts = append(texts, fmt.Sprintf("(%d, %s, %[2]s, %[2]s)", i, pg.Literal(s)))
	}

	ddl := `create type pair as (a int, b text); create type mood as enum ('so so', 'null', ''); create table "odd table" ();
		create domain positive as int check (value > 0); create domain colors as int[]; create domain couple as pair;
		create table typed (id int primary key, ` + strings.Join(columns, ", ") + `);
		insert into typed values ` + strings.Join(rows, ",") + `;
		create table texts (id int primary key, v text, "a,""b"" NULL" text, required text not null);
		insert into texts values ` + strings.Join(texts, ",") + `; insert into texts values (-1, null, null, ''), (-2, '', null, 'NULL');
		create table lone (v text); insert into lone select v from texts; create table "NULL" ("NULL" int); insert into "NULL" values (1), (null);
		create table none (id int);`
	tables := []string{"typed", "texts", "lone", "NULL", "none"}
	for _, name := range tables {
		ddl += fmt.Sprintf("create table %s (like %s); grant all on %[1]s, %[2]s to authenticated;",
			pg.Quote(name+"_back"), pg.Quote(name))
	}

	a := newAPI(t, ddl)
	for _, name := range tables {
		exported := a.do("GET", "/"+name, "", "Accept", "text/csv")
		back := a.do("POST", "/"+name+"_back", exported.body, "Content-Type", "text/csv", "Prefer", "return=minimal")
		if exported.status != 200 || back.status != 201 {
			t.Errorf("%s: got %d, then %d %s", name, exported.status, back.status, back.body)
			continue
		}

		var changed []string
		err := a.admin.QueryRow(t.Context(), fmt.Sprintf(`
			select array((select 'lost ' || t::text from %[1]s t except all select 'lost ' || t::text from %[2]s t)
				union all (select 'new ' || t::text from %[2]s t except all select 'new ' || t::text from %[1]s t))`,
			"public."+pg.Quote(name), "public."+pg.Quote(name+"_back"))).Scan(&changed)
		if err != nil || len(changed) > 0 {
			t.Errorf("%s: %v\n%s", name, err, strings.Join(changed, "\n"))
		}

		if _, err := csv.NewReader(strings.NewReader(exported.body)).ReadAll(); err != nil {
			t.Errorf("%s: the export is not of RFC 4180: %v", name, err)
		}
	}
}

// TestCSVReader compares records with their texts.
func TestCSVReader(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][][]string{
		"":                             nil,
		"\n\r\n":                       nil,
		"a":                            {{"a"}},
		"a,b\n":                        {{"a", "b"}},
		"a,b\r\n1,2\r\n":               {{"a", "b"}, {"1", "2"}},
		"a\n\n\nb":                     {{"a"}, {"b"}},
		",\n":                          {{"", ""}},
		"\"\"\n":                       {{`"`}},
		"\"a\"\"b\",\"c\r\nd\ne\"\r\n": {{`"a"b`, "\"c\r\nd\ne"}},
		"a\rb,c\r":                     {{"a\rb", "c"}},
		" a , b ":                      {{" a ", " b "}},
		"NULL,\"NULL\",\"\"":           {{"NULL", `"NULL`, `"`}},
	} {
		var got [][]string
		in := newCSVReader([]byte(text))
		record, err := in.Read()
		for ; err == nil; record, err = in.Read() {
			var fields []string
			for _, f := range record {
				fields = append(fields, map[bool]string{true: `"`}[f.quoted]+f.text)
			}
			got = append(got, fields)
		}

		if diff := cmp.Diff(want, got); err != io.EOF || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}

	for text, want := range map[string]csv.ParseError{
		`a"b`:          {StartLine: 1, Line: 1, Column: 2, Err: csv.ErrBareQuote},
		"a\n\"b\nc":    {StartLine: 2, Line: 2, Column: 5, Err: csv.ErrQuote},
		"a\n\"b\nc\"d": {StartLine: 2, Line: 3, Column: 3, Err: csv.ErrQuote},
	} {
		in := newCSVReader([]byte(text))
		var err error
		for err == nil {
			_, err = in.Read()
		}

		if e, ok := errors.AsType[*csv.ParseError](err); !ok || *e != want {
			t.Errorf("%q: got %+v, want %+v", text, err, want)
		}
	}
}
