package api_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

const bookType = "Content-Type: application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// workbook returns a workbook with rows, as XML, in its first sheet.
func workbook(t *testing.T, rows string, parts ...string) string {
	t.Helper()

	var b bytes.Buffer
	z := zip.NewWriter(&b)

	all := append([]string{
		"xl/workbook.xml",
		`<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="One" sheetId="1" r:id="rId7"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels",
		`<Relationships><Relationship Id="rId7" Target="worksheets/first.xml"/></Relationships>`,
		"xl/sharedStrings.xml", `<sst><si><t>Name</t></si><si><r><t>Ann </t></r><r><t>B.</t></r></si></sst>`,
		"xl/styles.xml",
		`<styleSheet><numFmts><numFmt numFmtId="170" formatCode="[Red]&quot;day&quot;0.00"/><numFmt numFmtId="171" formatCode="dd/mm/yyyy hh:mm"/></numFmts>
			<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/><xf numFmtId="171"/></cellXfs></styleSheet>`,
		"xl/worksheets/first.xml",
		`<?xml version="1.0"?><worksheet><sheetData>` + rows + `</sheetData><mergeCells/></worksheet>`}, parts...)
	for i := 0; i < len(all); i += 2 {
		w, err := z.Create(all[i])
		if err != nil {
			t.Fatal(err)
		}

		if _, err := w.Write([]byte(all[i+1])); err != nil {
			t.Fatal(err)
		}
	}

	if err := z.Close(); err != nil {
		t.Fatal(err)
	}

	return b.String()
}

// TestImportSheet selects a sheet by name.
func TestImportSheet(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	sheet := func(id string) string {
		return `<worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c></row><row r="2"><c r="A2"><v>` + id + `</v></c></row></sheetData></worksheet>`
	}

	book := workbook(t, "", "xl/workbook.xml",
		`<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>
		<sheet name="One" sheetId="1" r:id="rId7"/><sheet name="Zwei &amp; Drei" sheetId="2" r:id="rId8"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels",
		`<Relationships><Relationship Id="rId7" Target="worksheets/one.xml"/><Relationship Id="rId8" Target="worksheets/two.xml"/></Relationships>`,
		"xl/worksheets/one.xml", sheet("1"), "xl/worksheets/two.xml", sheet("2"))

	for which, want := range map[string]int{"": 1, "?sheet=zwei%20%26%20drei": 2} {
		a.Send("POST", "/tables/orders/import"+which, book, bookType).Want(201).Content("rows", 1)
		if n := query[int](t, a, "select count(*) from public.orders where id = $1", want); n != 1 {
			t.Errorf("%q: got %d rows, want 1", which, n)
		}
	}

	a.Send("POST", "/tables/orders/import?sheet=three", book, bookType).Want(400).Code("not_found").Field("sheet")
	a.Send("POST", "/tables/import?name=x&sheet=three", book, bookType).Want(400).Code("not_found").Field("sheet")
}

func TestImportWorkbook(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	const head = `<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>Born</t></is></c><c r="C1" t="str"><v>At</v></c><c r="D1" t="inlineStr"><is><t>Sum</t></is></c><c r="E1" t="inlineStr"><is><t>Ok</t></is></c></row>`
	file := workbook(t, head+
		`<row r="2"><c r="A2" t="s"><v>1</v></c><c r="B2" s="1"><v>36526</v></c><c r="C2" s="3"><v>36526.5</v></c><c r="D2" s="2"><f>1+1</f><v>2.5</v></c><c r="E2" t="b"><v>1</v></c></row>
		<row r="3"/><row r="5"><c r="A5" t="inlineStr"><is><t>tab	x</t></is></c><c r="D5"><v>1E3</v></c><c r="E5" t="e"><v>#N/A</v></c></row>`)

	r := a.Send("POST", "/tables/import?name=book", file, bookType).Want(201).Content("rows", 2)
	var got []string
	for _, c := range r.Get("columns").([]any) {
		m := c.(map[string]any)
		got = append(got, fmt.Sprint(m["name"], " ", m["type"]))
	}

	if want := "name text, born date, at timestamp, sum numeric, ok boolean"; strings.Join(got, ", ") != want {
		t.Errorf("got columns %q, want %s", got, want)
	}
	if got := query[string](t, a, "select string_agg(b::text, ' ' order by sum) from public.book b"); got !=
		`("Ann B.",2000-01-01,"2000-01-01 12:00:00",2.5,t) ("tab	x",,,1000,)` {
		t.Errorf("got %s", got)
	}

	a.Send("POST", "/tables/book/import?on_error=skip",
		workbook(t,
			head+strings.ReplaceAll(`<row r="9"><c r="F9"><v>1</v></c></row><row r="10"><c r="D10"><v>7</v></c></row>`,
				"At", "at")), bookType).
		Want(422).Code("unknown_column")

	a.Send("POST", "/tables/book/import?on_error=skip&header=false",
		workbook(t,
			`<row><c t="str"><v>x</v></c><c/><c/><c><v>7</v></c><c t="b"><v>0</v></c></row><row r="9"><c r="F9"><v>1</v></c></row>`), bookType).
		Want(201).Content("rows", 1).Content("rejected", 1).Content("rejectedLines.0.line", 9)
}

// TestImportWorkbookReportsEachRow imports rows whose only cell has no value that can be stored.
func TestImportWorkbookReportsEachRow(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("cells", "name text")
	file := workbook(t, `<row r="1"><c r="A1" t="str"><v>id</v></c><c r="B1" s="1"/></row>
		<row r="2"><c r="ZZZZ2"><v>1</v></c></row><row r="3"><c r="A3" t="s"><v>9</v></c></row><row r="4"><c r="A4"><v>4</v></c></row>`)

	r := a.Send("POST", "/tables/cells/import", file, bookType).Want(422).Code("ragged")
	if got, want := r.Metadata("rejectedLines.0.message"), `has a cell out of place: "ZZZZ2"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	for _, path := range []string{"/tables/cells/import?on_error=skip", "/tables/import?name=newcells&on_error=skip"} {
		a.Send("POST", path, file, bookType).Want(201).Content("rows", 1).Content("rejected", 2).
			Content("rejectedLines.0.line", 2).Content("rejectedLines.0.code", "ragged").
			Content("rejectedLines.1.line", 3).Content("rejectedLines.1.code", "malformed")
	}

	// Cells missing at the end of the first row are null, too.
	a.Send("POST", "/tables/cells/import?header=false", workbook(t, `<row><c><v>7</v></c></row>`), bookType).Want(201).
		Content("rows", 1)
}

// TestImportWorkbookRefuses imports invalid archives and decompression bombs.
func TestImportWorkbookRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	good := workbook(t, `<row><c t="str"><v>x</v></c></row>`)
	for name, file := range map[string]string{
		"nothing":         "",
		"no archive":      "id\n1\n",
		"a part of one":   good[:len(good)/2],
		"another archive": zipOf(t, "a.txt", "x"),
		"no sheet":        workbook(t, "", "xl/_rels/workbook.xml.rels", `<Relationships/>`),
		"a sheet elsewhere": workbook(t, "", "xl/_rels/workbook.xml.rels",
			`<Relationships><Relationship Id="rId7" Target="../../etc/passwd"/></Relationships>`),
		"broken XML": workbook(t, `<row><c>`),
		"a document type": workbook(t, "", "xl/worksheets/first.xml",
			`<!DOCTYPE x [<!ENTITY a "b">]><worksheet><sheetData/></worksheet>`),
		"CDATA":               workbook(t, `<row><c t="str"><v><![CDATA[`+strings.Repeat(">", 100)+`]]></v></c></row>`),
		"one long cell":       workbook(t, `<row><c t="str"><v>`+strings.Repeat("x", 9<<20)+`</v></c></row>`),
		"one long tag":        workbook(t, `<row `+strings.Repeat(` a=""`, 20_000)+`/>`),
		"columns without end": workbook(t, `<row><c r="ZZZZZZZZZZ1"><v>1</v></c></row>`),
		"nothing in it":       workbook(t, ""),
	} {
		if r := a.Send("POST", "/tables/import?name=bad", file, bookType); r.Status != 422 {
			t.Errorf("%s: got %d, want 422\n%s", name, r.Status, r.Body)
		}
	}

	if len(blobs(t, a)) > 0 || query[bool](t, a, "select to_regclass('public.bad') is not null") {
		t.Error("a refused file has left data")
	}
}

func zipOf(t *testing.T, name, content string) string {
	t.Helper()

	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}

	return b.String()
}

// TestImportOneWorkbookAtATime checks that a second workbook import of a project gets 429.
func TestImportOneWorkbookAtATime(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	book := workbook(t, `<row r="1"><c t="inlineStr"><is><t>id</t></is></c></row><row r="2"><c><v>1</v></c></row>`)

	database := a.ConnectProject()
	if _, err := database.Exec(t.Context(), `
		create function public.hold() returns trigger language plpgsql as $$ begin perform pg_catalog.pg_advisory_xact_lock(4711); return new; end $$;
		grant execute on function public.hold() to public;
		create trigger hold before insert on public.orders for each row execute function public.hold()`); err != nil {
		t.Fatal(err)
	}

	holder, err := database.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := holder.Exec(t.Context(), "select pg_advisory_xact_lock(4711)"); err != nil {
		t.Fatal(err)
	}

	imported := make(chan *apitest.Reply, 1)
	go func() { imported <- a.Send("POST", "/tables/orders/import", book, bookType) }()

	until(t, "the import waits in the trigger", func() bool {
		return query[bool](t, a,
			"select exists(select from pg_locks where database = (select oid from pg_database where datname = current_database()) and locktype = 'advisory' and objid = 4711 and not granted)")
	})

	a.Send("POST", "/tables/orders/import", book, bookType).Want(429).Code("too_many_imports")
	a.Send("POST", "/tables/import?name=other", book, bookType).Want(429).Code("too_many_imports")

	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	(<-imported).Want(201).Content("rows", 1)
	a.Send("POST", "/tables/import?name=other", book, bookType).Want(201).Content("rows", 1)
}
