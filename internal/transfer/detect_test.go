package transfer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSurvey checks the types of a new table's columns, and what becomes of their values.
func TestSurvey(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		file string // CSV without a header, rows separated by blanks
		o    Options
		want string // type, values, notes
	}{
		{"2026-01-01 2026-12-31", Options{}, "date 2026-01-01 2026-12-31"},
		{"2026-01-01 2026-01-01T10:00", Options{}, "timestamp 2026-01-01 2026-01-01T10:00"},
		{"2026-01-01 2026-01-01T10:00:00Z", Options{}, "text 2026-01-01 2026-01-01T10:00:00Z"},
		{"2026-01-01T10:00:00+02 2026-01-01T10:00:00Z", Options{}, "timestamptz 2026-01-01T10:00:00+02 2026-01-01T10:00:00Z"},
		{"2026-01-01 1", Options{}, "text 2026-01-01 1"},
		{"2026-02-30 2026-01-01T10:00:00", Options{}, "text 2026-02-30 2026-01-01T10:00:00"},
		{"1 1.5", Options{}, "numeric 1 1.5"},
		{"1 3000000000", Options{}, "bigint 1 3000000000"},
		{"1 01", Options{}, "text 1 01"},
		{"1 -0 0.5 -0.25", Options{}, "numeric 1 -0 0.5 -0.25"},
		{"1e5", Options{}, "text 1e5"},
		{"true FALSE", Options{}, "boolean true FALSE"},

		// Decimal commas, in a file with semicolons.
		{"1.234,56 99,00", Options{Delimiter: ';'}, "numeric 1234.56 99.00 decimal_comma"},
		{"1.000 2.500,5", Options{Delimiter: ';'}, "numeric 1000 2500.5 decimal_comma"},
		{"1.000.000 5", Options{Delimiter: ';'}, "integer 1000000 5 decimal_comma"},
		{"1.000 2.000", Options{Delimiter: ';'}, "text 1.000 2.000 unclear_numbers"},
		{"1.000 2.000", Options{Delimiter: ';', Decimal: "comma"}, "integer 1000 2000 decimal_comma"},
		{"1.000 2.000", Options{Delimiter: ';', Decimal: "point"}, "numeric 1.000 2.000"},
		{"1.000 2.000", Options{Delimiter: ','}, "numeric 1.000 2.000"},
		{"1.000 2.000", Options{Format: TSV}, "numeric 1.000 2.000"},
		{"1.5 2,5", Options{Delimiter: ';'}, "numeric 1.5 2.5"},
		{"1.5 2,5 1.000", Options{Delimiter: ';'}, "text 1.5 2,5 1.000 unclear_numbers"},
		{"1,5 1,2,3", Options{Delimiter: ';'}, "text 1,5 1,2,3"},
		{"1.5 2.5", Options{Delimiter: ';', Decimal: "comma"}, "text 1.5 2.5"},

		// Groups of digits.
		{`"47,072.02" "25,235.07"`, Options{Delimiter: ','}, "numeric 47072.02 25235.07"},
		{`"1,000" "2,000"`, Options{Delimiter: ','}, "text 1,000 2,000 unclear_numbers"},
		{`"1,000" 2.5`, Options{Delimiter: ','}, "numeric 1000 2.5"},
		{"12,34,567.5 1,00,000.25", Options{Delimiter: ';'}, "numeric 1234567.5 100000.25"},
		{"1'234.50 -7.25", Options{Delimiter: ';'}, "numeric 1234.50 -7.25"},
		{"1\u00a0234,50 2\u202f000,00", Options{Delimiter: ';'}, "numeric 1234.50 2000.00 decimal_comma"},
		{"12'345 67'890", Options{Delimiter: ';'}, "text 12'345 67'890 unclear_numbers"},
		{"1.23.456 5,5", Options{Delimiter: ';'}, "text 1.23.456 5,5"},
		{"1.2345,5", Options{Delimiter: ';'}, "text 1.2345,5"},
		{"192.168.100.200", Options{Delimiter: ';'}, "text 192.168.100.200"},

		// Dates with the year last.
		{"31.12.2026 01.02.2026", Options{}, "date 2026-12-31 2026-02-01 day_first"},
		{"12/31/2026 01/02/2026", Options{}, "date 2026-12-31 2026-01-02 month_first"},
		{"01/02/2026 2026-01-05", Options{}, "text 01/02/2026 2026-01-05 unclear_dates"},
		{"05/05/2026", Options{}, "date 2026-05-05"},
		{"31/12/2026 12/31/2026", Options{}, "date 2026-12-31 2026-12-31"},
		{"31/12/2026 12/31/2026 01/02/2026", Options{}, "text 31/12/2026 12/31/2026 01/02/2026 unclear_dates"},
		{"31.12.26", Options{}, "text 31.12.26 unclear_dates"},
		{"01.02.2026 31.12.26", Options{}, "text 01.02.2026 31.12.26 unclear_dates"},
		{"31.12.26 x", Options{}, "text 31.12.26 x"},
		{"31.13.26", Options{}, "text 31.13.26"},
		{"31.13.2026", Options{}, "text 31.13.2026"},
		{"31.12.2026T10:00 01.02.2026T09:30:05", Options{}, "timestamp 2026-12-31T10:00 2026-02-01T09:30:05 day_first"},
	} {
		test.o.Format = cmpOr(test.o.Format, CSV)
		if got := surveyed(t, strings.ReplaceAll(test.file, " ", "\n"), test.o); got != test.want {
			t.Errorf("%q, delimiter %q, decimal %q:\ngot  %s\nwant %s", test.file, test.o.Delimiter, test.o.Decimal, got,
				test.want)
		}
	}
}

func cmpOr(format, other string) string {
	if format == "" {
		return other
	}
	return format
}

// surveyed returns the type, values and notes of the last column of a file.
func surveyed(t *testing.T, file string, o Options) string {
	t.Helper()

	v, err := readFile(t.Context(), strings.NewReader(file), o)
	if err != nil {
		t.Fatal(err)
	}
	columns, notes := v.newColumns()
	c := columns[len(columns)-1]

	s, err := rewind(t.Context(), strings.NewReader(file), o, nil)
	if err != nil {
		t.Fatal(err)
	}

	got := []string{c.Type}
	for r, err := s.next(); err == nil; r, err = s.next() {
		text, bad := c.convert(r.values[len(columns)-1])
		if bad != nil {
			text = []byte(bad.Code)
		}
		got = append(got, string(text))
	}
	for _, n := range notes {
		got = append(got, n.Code)
	}

	return strings.Join(got, " ")
}

// TestSurveyOfFile checks that columns without evidence of their own follow those that have it.
func TestSurveyOfFile(t *testing.T) {
	t.Parallel()

	for file, want := range map[string]string{
		"1.234,56;1.000":           "integer 1000 decimal_comma decimal_comma",
		"1.5;1,000":                "integer 1000",
		"1.234,56;1.5;1.000":       "text 1.000 decimal_comma unclear_numbers",
		"31.12.2026;01/02/2026":    "date 2026-02-01 day_first day_first",
		"1.2.3;1.000":              "text 1.000 unclear_numbers",
		"x 1,5;1.000":              "text 1.000 unclear_numbers",
		"31.12.2026;1.000;01.02.3": "text 01.02.3 day_first unclear_numbers",
	} {
		if got := surveyed(t, file, Options{Format: CSV, Delimiter: ';'}); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}

// TestSurveyOfKnownColumns checks that values of a table's numeric and date columns are stored in
// the reading of the file, or rejected.
func TestSurveyOfKnownColumns(t *testing.T) {
	t.Parallel()

	number, day := ImportedColumn{Name: "c", number: true}, ImportedColumn{Name: "c", date: true}
	for _, test := range []struct {
		column ImportedColumn
		file   string
		want   string
	}{
		{number, "1.234,5 1.000 7 n/a 1e3 1.5", "1234.5 invalid_value 7 n/a 1e3 1.5"},
		{number, "2,5 1.000 n/a 1.2.3", "2.5 1000 n/a invalid_value"},
		{number, "1.000 7", "invalid_value 7"},
		{number, "1.5 1.000 NaN", "1.5 1.000 NaN"},
		{day, "31.12.2026 01.02.2026 2026-01-01 infinity 1.2.26", "2026-12-31 2026-02-01 2026-01-01 infinity invalid_value"},
		{day, "01/02/2026 05/05/2026", "invalid_value 2026-05-05"},
	} {
		file, o := strings.ReplaceAll(test.file, " ", "\n"), Options{Format: CSV, Delimiter: ';'}
		v, err := readFile(t.Context(), strings.NewReader(file), o)
		if err != nil {
			t.Fatal(err)
		}
		columns := []ImportedColumn{test.column}
		v.setReadings(columns)

		var got []string
		for line := range strings.SplitSeq(file, "\n") {
			text, bad := columns[0].convert(value{text: []byte(line)})
			if bad != nil {
				text = []byte(bad.Code)
			}
			got = append(got, string(text))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %s, want %s", test.file, got, test.want)
		}
	}
}

// TestHeaderHint suggests the line of the names if most rows have more values than the header, and
// a delimiter if none has as many.
func TestHeaderHint(t *testing.T) {
	t.Parallel()

	for file, want := range map[string]string{
		"Spending over 25000\nPublished\n\nDepartment,Amount\nA,1\nB,2\n": "; if line 4 has the names of the columns, import with header_line=4",
		"a\n1\n2\n3,4\n":         "",
		"a,b\n1,2\n3\n":          "",
		"a,b\n":                  "",
		"Name, First;Age\nX;5\n": "; if another character than ',' separates the values, import with delimiter",
	} {
		v, err := readFile(t.Context(), strings.NewReader(file), Options{Format: CSV, Header: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := v.headerHint(); got != want {
			t.Errorf("%q: got %q, want %q", file, got, want)
		}
	}
}

func TestColumnNames(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("ß", 40)
	got := columnNames([]string{
		"ID", "名前", "Straße", "Año (2026)", "2nd", "", "id", "नाम", "e\u0301", "ctid", "٣", long, "🙂",
	})
	want := []string{"id", "名前", "straße", "año_2026", "_2nd", "column_6", "id_2", "नाम", "é", "ctid_2", "_٣",
		strings.Repeat("ß", 27), "column_13"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestWorkbookNotes reads the first visible sheet, and tells of hidden parts, errors and formulas.
func TestWorkbookNotes(t *testing.T) {
	t.Parallel()

	const links = `<Relationships><Relationship Id="a" Target="one.xml"/><Relationship Id="b" Target="two.xml"/></Relationships>`
	const sheets = bookStart + `<sheet name="Salaries" state="hidden" r:id="b"/><sheet name="One" r:id="a"/><sheet name="Three" r:id="b"/></sheets></workbook>`
	const styles = `<styleSheet><numFmts><numFmt numFmtId="170" formatCode="00000"/><numFmt numFmtId="171" formatCode="[h]:mm"/>
		<numFmt numFmtId="172" formatCode="000\-00"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="170"/><xf numFmtId="171"/><xf numFmtId="172"/>
		<xf numFmtId="22"/><xf numFmtId="31"/></cellXfs></styleSheet>`
	book := packWorkbook(t, "xl/workbook.xml", sheets, "xl/_rels/workbook.xml.rels", links, "xl/styles.xml", styles,
		"xl/one.xml", `<worksheet><cols><col min="2" max="28" hidden="1"/></cols><sheetData>
		<row r="1"><c s="1"><v>123</v></c><c s="2"><v>1.5</v></c><c s="3"><v>1234567</v></c></row>
		<row r="2" hidden="1"><c s="4"><v>45000.43055555</v></c><c s="4"><v>45000.5000000116</v></c><c s="5"><v>45000</v></c></row>
		<row r="3"><c t="e"><v>#N/A</v></c><c><v>12345678901234567890</v></c><c t="str"><f>A1</f><v></v></c></row>
		<row r="4"><c><f>A1+1</f></c></row><row r="5"><c><f>A1+1</f><v></v></c></row><row r="6"><c t="n"><f>A1</f><v/></c></row></sheetData></worksheet>`)

	o := Options{Format: XLSX}
	const rejected = ` formula_without_result: has a formula whose result is not in the file: open and save it in a spreadsheet program, or replace the formula by its value`
	const want = `1 [00123 36:00:00 12345-67] 2 [2023-03-15 10:20:00 2023-03-15 12:00:00.001 2023-03-15] 3 [null 12345678901234567890 ] ` +
		`4` + rejected + ` 5` + rejected + ` 6` + rejected
	if got := formatRows(t, book, o, nil); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	v, err := readFile(t.Context(), book, o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range v.source.(*xlsxSource).notes() {
		got = append(got, n.Code+": "+n.Message)
	}
	if want := []string{
		`other_sheets: the sheet "One" was imported; import others with sheet: "Salaries" (hidden), "Three"`,
		"hidden_parts: parts of the sheet that are hidden were imported: columns B to AB, 1 rows",
		"errors_as_null: 1 cells with an error such as #N/A became null",
	}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}

	if got := formatRows(t, book, Options{Format: XLSX, Sheet: "none"}, nil); got != "must be the name of one of the workbook's sheets" {
		t.Errorf("got %s", got)
	}
}

func TestSetFormat(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		o      Options
		format string
		want   string
	}{
		{Options{}, JSON, ""},
		{Options{Sheet: "a"}, CSV, "sheet"},
		{Options{Delimiter: ';'}, XLSX, "delimiter"},
		{Options{Decimal: "comma"}, JSONL, "decimal"},
		{Options{HeaderLine: 2, Header: true}, XLSX, ""},
		{Options{HeaderLine: 2}, CSV, "header_line"},
	} {
		err := test.o.SetFormat(test.format)
		if got := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v as %s: got %v, want the field %q", test.o, test.format, err, test.want)
		}
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()

	for object, want := range map[string]string{
		`{}`: ``, `{"a\"": "b\\c", "d": null, "e": 5}`: `"a\""=>"b\\c", "d"=>NULL, "e"=>"5"`,
	} {
		if got := string(pairs([]byte(object))); got != want {
			t.Errorf("%s: got %s, want %s", object, got, want)
		}
	}
}

func TestCounter(t *testing.T) {
	t.Parallel()

	c := counter{}
	for _, text := range []string{"5", "x", "-3", "9", "100"} {
		c.add(value{text: []byte(text)})
	}
	c.add(value{null: true, text: []byte("7")})

	c.store(0, 2)
	c.store(2, 4) // the last rows are rejected

	if !c.stored || c.lowest != -3 || c.highest != 9 {
		t.Errorf("got %d to %d (%t), want -3 to 9", c.lowest, c.highest, c.stored)
	}
}
