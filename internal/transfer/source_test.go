package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
)

// formatRows reads a file and formats each row: its values in brackets, or its rejection.
func formatRows(t *testing.T, file io.ReadSeeker, o Options, known []string) string {
	t.Helper()

	s, err := rewind(context.WithoutCancel(t.Context()), file, o, known)
	if err != nil {
		return failureText(err)
	}

	var rows []string
	for {
		r, err := s.next()
		if err == io.EOF {
			return strings.Join(rows, " ")
		}
		if err != nil {
			return strings.Join(append(rows, failureText(translateFileError(err))), " ")
		}
		if r.bad != nil {
			rows = append(rows, fmt.Sprintf("%d %s: %s", r.bad.Line, r.bad.Code, r.bad.Message))
			continue
		}

		var values []string
		for _, v := range r.values {
			text := string(v.text)
			if v.null {
				text = "null"
			}
			values = append(values, text)
		}
		rows = append(rows, fmt.Sprint(r.line, " ", values))
	}
}

func failureText(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Fields[0].Message
	}
	return err.Error()
}

// TestRowsOfWorkbooks checks that each row with a value is read or rejected.
func TestRowsOfWorkbooks(t *testing.T) {
	t.Parallel()

	const head = `<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row>`
	for _, tt := range []struct{ rows, want string }{
		{`<row r="2"><c r="ZZZZ2"><v>1</v></c></row><row r="3"><c r="A3"><v>1</v></c></row>`,
			`2 ragged: has a cell out of place: "ZZZZ2" 3 [1 null]`},
		{`<row r="2"><c r="2"><v>1</v></c></row>`, `2 ragged: has a cell out of place: "2"`},
		{`<row r="2"><c r="a2"><v>1</v></c></row>`, `2 ragged: has a cell out of place: "a2"`},
		{`<row r="2"><c r="B2"><v>1</v></c><c r="A2"><v>1</v></c></row>`,
			`2 ragged: has a cell out of place: "A2"`},
		{`<row r="2"><c r="ZZZZ2" s="1"/><c r="A2"><v>1</v></c></row>`, `2 [1 null]`},
		{`<row r="2"><c r="ZZZZ2" s="1"/></row>`, ``},
		{`<row r="2"><c t="s"><v>7</v></c></row>`,
			`2 malformed: has a cell with the shared text "7", which the workbook does not have`},
		{`<row r="2"><c t="s"><v>x</v></c></row>`,
			`2 malformed: has a cell with the shared text "x", which the workbook does not have`},
		{`<row r="2"><c r="A2" t="e"><v>#N/A</v></c></row>`, `2 [null null]`},
		{`<row r="2"><c t="b"><v>true</v></c><c t="b"><v>0</v></c></row>`, `2 [true false]`},
		{`<row r="2"><c t="b"><v>2</v></c></row>`, `2 [2 null]`},
		{`<row r="2"><c s="1"/><c/></row>`, ``},
	} {
		book := packWorkbook(t, "xl/one.xml", `<worksheet><sheetData>`+head+tt.rows+`</sheetData></worksheet>`)
		got := formatRows(t, book, Options{Format: XLSX, Header: true}, nil)
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.rows, got, tt.want)
		}
	}
}

// TestRowsOfText checks that each line of a text is read or rejected.
func TestRowsOfText(t *testing.T) {
	t.Parallel()

	withHeader := Options{Format: CSV, Header: true}
	for _, tt := range []struct {
		o         Options
		known     []string
		text      string
		want      string
		wantNames []string
	}{
		// An empty line is a null value if it can be one, as PostgreSQL writes it.
		{withHeader, []string{"a"}, "a\n\n1\n\n", `2 [null] 3 [1] 4 [null]`, nil},
		{withHeader, []string{"a"}, "\na\r\n\r\n1\r\n", `3 [null] 4 [1]`, nil},
		{Options{Format: TSV}, []string{"a"}, "\n1\n", `1 [null] 2 [1]`, nil},
		{withHeader, []string{"a", "b"}, "a,b\n\n1,2\n\n", `3 [1 2]`, nil},
		// Excel declares a delimiter in the first line.
		{withHeader, nil, "sep=;\r\na,1;b\r\n1,5;2\r\n", `3 [1,5 2]`, []string{"a,1", "b"}},
		{Options{Format: CSV, Header: true, HeaderLine: 3}, nil, "SEP=|\n\na|b\n1|2\n", `4 [1 2]`, []string{"a", "b"}},
		{withHeader, nil, "a|b;c\n1|2;3\n", `2 [1 2;3]`, []string{"a", "b;c"}},
		{Options{Format: CSV, Header: true, Delimiter: ','}, nil, "sep=;\na,b\n1,2\n", `3 [1 2]`, []string{"a", "b"}},
		{withHeader, nil, "sep=;;\na\n", `2 [a]`, []string{"sep=", "", ""}},
		// A rejected row tells how many lines it has.
		{withHeader, nil, "a,b\n1,\"2\n3,4\n5,6\n", `2 malformed: has an unclosed quote and takes the lines up to 4`, nil},
		{withHeader, nil, "a,b\n1,\"2\n3,\"4\n5,6\n",
			`2 malformed: has text after a closing quote and takes the lines up to 3 4 [5 6]`, nil},
		{withHeader, nil, "a,b\n1,\"2\"3\n", `2 malformed: has text after a closing quote`, nil},
		{withHeader, nil, "a,b\n1,\"2", `2 malformed: has an unclosed quote`, nil},
		// A carriage return ends lines only if it ends the first.
		{withHeader, nil, "\"a\r\",b\r1,\"2\r3\"\r4,5", "3 [1 2\r3] 5 [4 5]", []string{"a\r", "b"}},
		{withHeader, nil, "a\r", ``, []string{"a"}},
		{withHeader, nil, "a,b\n1,2\r3,4\n5,\"6\r7\"\n", "2 malformed: has a carriage return outside of quotes that ends " +
			"no line; quote the value, or save the file with one kind of line breaks 3 [5 6\r7]", nil},
		// Titles stand above the header.
		{Options{Format: CSV, Header: true, HeaderLine: 4}, nil, "Costs, all; of\n\"2026\n\na;b\n1;2\n",
			`5 [1 2]`, []string{"a", "b"}},
		{Options{Format: CSV, Header: true, HeaderLine: 3}, nil, "a;b\n", `must be a line of the file`, nil},
		// The delimiter is that of the header.
		{withHeader, nil, "a;b\n1;2,5\n", `2 [1 2,5]`, []string{"a", "b"}},
		{withHeader, nil, "a\tb\n1\t2\n", `2 [1 2]`, []string{"a", "b"}},
		{withHeader, nil, "\xef\xbb\xbf\n\"a, b\";\"c\n\"\"d\"\n1;2\n", `4 [1 2]`, []string{"a, b", "c\n\"d"}},
		{withHeader, nil, "a;b,c\n1,2\n", `2 [1 2]`, []string{"a;b", "c"}},
		{withHeader, nil, "\"a;b\"\n1;2\n", `2 [1;2]`, []string{"a;b"}},
		{Options{Format: CSV, Header: true, Delimiter: ','}, nil, "a;b\n1,2\n", `2 [1 2]`, []string{"a;b"}},
		{Options{Format: TSV, Header: true}, nil, "a;b\n1\n", `2 [1]`, []string{"a;b"}},
		{Options{Format: CSV}, nil, "a;b\n", `1 [a;b]`, nil},
		{withHeader, nil, "n\xe4me\n1\n", `can't be imported: line 1 is not valid UTF-8: set the encoding`, nil},
	} {
		if got := formatRows(t, strings.NewReader(tt.text), tt.o, tt.known); got != tt.want {
			t.Errorf("%q:\ngot  %q\nwant %q", tt.text, got, tt.want)
		}

		if tt.wantNames == nil {
			continue
		}

		s, err := rewind(t.Context(), strings.NewReader(tt.text), tt.o, tt.known)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if got := s.names(); !slices.Equal(got, tt.wantNames) {
			t.Errorf("%q: got names %q, want %q", tt.text, got, tt.wantNames)
		}
	}
}

// TestColumnsOfWorkbook checks that missing cells at the end of a row are null, and that known
// columns replace those of the first row.
func TestColumnsOfWorkbook(t *testing.T) {
	t.Parallel()

	book := packWorkbook(t, "xl/one.xml", `<worksheet><sheetData>
		<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" s="1"/></row><row r="2"><c r="A2"><v>1</v></c></row>
		<row r="3"><c r="A3"><v>1</v></c><c r="B3"><v>2</v></c></row></sheetData></worksheet>`)
	for _, tt := range []struct {
		header bool
		known  []string
		want   string
	}{
		{true, []string{"a"}, `2 [1] 3 [1 2]`},
		{true, nil, `2 [1 null] 3 [1 2]`},
		{false, []string{"a", "b", "c"}, `1 [a null null] 2 [1 null null] 3 [1 2 null]`},
		{false, []string{"a"}, `1 [a] 2 [1] 3 [1 2]`},
	} {
		if got := formatRows(t, book, Options{Format: XLSX, Header: tt.header}, tt.known); got != tt.want {
			t.Errorf("header %t, columns %v: got %s, want %s", tt.header, tt.known, got, tt.want)
		}
	}
}

// TestRowsOfJSON checks that each object of lines or of an array is read or rejected.
func TestRowsOfJSON(t *testing.T) {
	t.Parallel()

	const malformed = "malformed: is not a JSON object"
	for text, want := range map[string]string{
		`{"a": 1}` + "\n\n" + `{"a": "x\\\"]"}`: `1 [1] 3 [x\"]]`,
		`[]`:                                    ``,
		"\n [ {\"a\": 1},\n\n{\n\"a\": [1, \"]},\"]\n} ]\n": `2 [1] 4 [[1, "]},"]]`,
		`[{"a": 1} {"a": 2}]`:                               `1 malformed: is not a JSON object`,
		`[{"a": 1}, 5, {"a": 2}]`:                           `1 [1] 1 ` + malformed + ` 1 [2]`,
		`[{"a": 1},]`:                                       `1 [1] 1 ` + malformed,
		"[{\"a\": 1},\n{\"a\":":                             `1 [1] 2 malformed: is the end of a JSON array that is not closed`,
		`[{"a": 1}`:                                         `1 malformed: is the end of a JSON array that is not closed`,
		`[{"a": 1}] x`:                                      `1 [1] 1 malformed: has text behind the JSON array`,
		`[{"a": "\`:                                         `1 malformed: is the end of a JSON array that is not closed`,
		"{\n  \"a\": 1\n}\n":                                `1 [1]`,
		" {\"a\":\n1} {\"a\": \"}\"}\n\n{\n\"a\": 3}":       `1 [1] 2 [}] 4 [3]`,
		"{\n\"a\": 1}\nx":                                   `1 [1] 3 malformed: has text that is not a JSON object`,
		"{\n\"a\": 1":                                       `1 malformed: begins a JSON object that is not closed`,
	} {
		if got := formatRows(t, strings.NewReader(text), Options{Format: JSONL}, []string{"a"}); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}

	long := `[{"a": "` + strings.Repeat("x", maxRecord) + `"}]`
	got := formatRows(t, strings.NewReader(long), Options{Format: JSONL}, nil)
	if !strings.Contains(got, "has a row of more") {
		t.Errorf("long element: got %.200s", got)
	}
}
