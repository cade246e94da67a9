package transfer

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

const (
	bookStart = `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>`
	bookXML   = bookStart + `<sheet name="One" r:id="a"/></sheets></workbook>`
	linksXML  = `<Relationships><Relationship Id="a" Target="one.xml"/></Relationships>`
	sheetXML  = `<worksheet><sheetData><row r="1"><c t="s"><v>0</v></c></row></sheetData></worksheet>`
)

// packWorkbook builds a workbook with default parts; given replaces parts, as pairs of name and
// text.
func packWorkbook(t *testing.T, given ...string) *bytes.Reader {
	t.Helper()

	parts := map[string]string{
		"xl/workbook.xml": bookXML, "xl/_rels/workbook.xml.rels": linksXML, "xl/one.xml": sheetXML,
	}

	for i := 0; i < len(given); i += 2 {
		parts[given[i]] = given[i+1]
	}

	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range parts {
		method := zip.Deflate
		if text == "" {
			method = zip.Store // thousands of compressors take seconds
		}

		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}

		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}

	if err := z.Close(); err != nil {
		t.Fatal(err)
	}

	return bytes.NewReader(b.Bytes())
}

// readWorkbook reads all rows of a workbook's first sheet and returns the first value of the first
// row.
func readWorkbook(ctx context.Context, book *bytes.Reader) (first string, err error) {
	s, err := openSheet(ctx, book, book.Size(), "")
	for n := 0; err == nil; n++ {
		var r row
		if r, err = s.next(); err == nil && n == 0 && len(r.values) > 0 {
			first = string(r.values[0].text)
		}
	}

	if err == io.EOF {
		err = nil
	}

	return first, err
}

// lower lowers a limit until the test ends, so that a small workbook exceeds it.
func lower[T any](t *testing.T, limit *T, to T) {
	t.Helper()

	before := *limit
	*limit = to

	t.Cleanup(func() { *limit = before })
}

// TestHostileWorkbooks opens workbooks of a few kilobytes that expand to large ones. It is not
// parallel, since it measures allocations and lowers limits.
func TestHostileWorkbooks(t *testing.T) {
	lower(t, &maxStrings, 1<<20)
	lower(t, &maxShared, 20_000)
	lower(t, &maxStyles, 1000)

	const shared, styles = "xl/sharedStrings.xml", "xl/styles.xml"
	repeat := strings.Repeat
	for _, test := range []struct {
		what  string
		parts []string
		want  error
		first int    // bytes of the first value
		limit uint64 // limit of allocated MB
	}{
		{"runs of one text", []string{shared, `<sst><si>` + repeat(`<r><t>x</t></r>`, 40_000) + `</si></sst>`}, nil,
			40_000, 40},
		{"runs of one cell",
			[]string{"xl/one.xml",
				`<worksheet><sheetData><row><c t="inlineStr"><is>` + repeat(`<r><t>x</t></r>`, 40_000) +
					`</is></c></row></sheetData></worksheet>`}, nil, 40_000, 40},
		{"empty texts", []string{shared, `<sst>` + repeat(`<si/>`, maxShared) + `</sst>`}, nil, 0, 10},
		{"too many empty texts", []string{shared, `<sst>` + repeat(`<si/>`, maxShared+1) + `</sst>`},
			errTooLarge, 0, 10},
		{"texts", []string{shared, `<sst>` + repeat(`<si><t>longer text</t></si>`, 19_000) + `</sst>`}, nil, 11, 20},
		{"too many texts", []string{shared, `<sst>` + repeat(`<si><t>`+repeat("x", 100)+`</t></si>`, 9500) + `</sst>`},
			errTooLarge, 0, 20},
		{"attributes of a text", []string{shared, `<sst ` + repeat(`a="" `, 150_000) + `/>`}, errTooLarge, 0, 10},
		{"attributes of a row",
			[]string{"xl/one.xml",
				`<worksheet><sheetData><row ` + repeat(`a="" `, 150_000) + `/></sheetData></worksheet>`},
			errTooLarge, 0, 10},
		{"a > in an attribute",
			[]string{"xl/one.xml",
				`<worksheet><sheetData><row a="` + repeat(`>`, 150_000) + `"/></sheetData></worksheet>`},
			errTooLarge, 0, 10},
		{"deep elements", []string{"xl/one.xml", `<worksheet><sheetData>` + repeat(`<row>`, 100_000)},
			errTooLarge, 0, 10},
		{"a document type", []string{"xl/one.xml", `<!DOCTYPE worksheet [<!ENTITY a "aaaa">]>` + sheetXML},
			errWorkbook, 0, 10},
		{"a document type of texts",
			[]string{shared, `<!DOCTYPE sst [<!ENTITY a "aaaa">]><sst><si><t>&a;</t></si></sst>`}, errWorkbook, 0, 10},
		{"sheets",
			[]string{"xl/workbook.xml",
				bookStart + `<sheet name="One" r:id="a"/>` + repeat(`<sheet name="x" r:id="b"/>`, 10_000) +
					`</sheets></workbook>`}, nil, 0, 15},
		{"styles",
			[]string{styles,
				`<styleSheet><cellXfs>` + repeat(`<xf numFmtId="14"/>`, maxStyles+1) + `</cellXfs></styleSheet>`},
			errTooLarge, 0, 2},
		{"links",
			[]string{"xl/_rels/workbook.xml.rels",
				`<Relationships>` + repeat(`<Relationship Id="b" Target="x"/>`, 10_000) +
					linksXML[len(`<Relationships>`):]}, nil, 0, 15},
	} {
		book := packWorkbook(t, test.parts...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)

		first, err := readWorkbook(t.Context(), book)
		runtime.ReadMemStats(&after)

		if !errors.Is(err, test.want) || len(first) != test.first {
			t.Errorf("%s: got %v, %d bytes, want %v, %d", test.what, err, len(first), test.want, test.first)
		}
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > test.limit {
			t.Errorf("%s: got %d MB allocated, want at most %d", test.what, got, test.limit)
		}
	}
}

// TestLongCells checks that the limit of a row bounds the text that the parser collects for a cell.
func TestLongCells(t *testing.T) {
	for _, text := range []string{
		`<v>` + strings.Repeat("x", 100<<10) + `</v>`, `<is>` + strings.Repeat(`<r><t>x</t></r>`, 10<<10) + `</is>`,
	} {
		reader := &markupReader{ctx: t.Context(), r: strings.NewReader(`<c>` + text + `</c>`), remaining: maxSheet,
			rowRemaining: 64 << 10}
		s := &xlsxSource{reader: reader, xml: xml.NewDecoder(reader)}

		start, err := s.xml.Token()
		if err != nil {
			t.Fatal(err)
		}

		if _, err := s.cell(start.(xml.StartElement)); !errors.Is(err, errTooLong) {
			t.Errorf("%.20s: got %v, want %v", text, err, errTooLong)
		}
	}
}

// TestSharedTextsAreSmall checks that shared strings need little more memory than their XML.
func TestSharedTextsAreSmall(t *testing.T) {
	for label, text := range map[string]string{
		"empty": `<si/>`, "short": `<si><t>x</t></si>`, "long": `<si><t>` + strings.Repeat("x", 1000) + `</t></si>`,
	} {
		all := `<sst>` + strings.Repeat(text, 250_000/len(text)) + `</sst>`
		book := packWorkbook(t, "xl/sharedStrings.xml", all)

		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)

		s, err := openSheet(t.Context(), book, book.Size(), "")
		if err != nil {
			t.Fatal(err)
		}

		runtime.GC()
		runtime.ReadMemStats(&after)

		if memory := int64(after.HeapAlloc) - int64(before.HeapAlloc); memory > 3*int64(len(all)) {
			t.Errorf("%s texts: got %d bytes in memory for %d bytes of XML", label, memory, len(all))
		}

		runtime.KeepAlive(s)
	}
}

// TestDirectoryIsBounded checks that an archive of many entries is rejected before all are read.
func TestDirectoryIsBounded(t *testing.T) {
	parts := []string{}
	for i := range 8000 {
		parts = append(parts, fmt.Sprintf("xl/sheets/%0300d.xml", i), "")
	}

	book := packWorkbook(t, parts...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	_, err := readWorkbook(t.Context(), book)
	runtime.ReadMemStats(&after)

	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; !errors.Is(err, errTooLarge) || got > 10 {
		t.Errorf("got %v, %d MB allocated", err, got)
	}
}

func TestReadEndsWithContext(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	book := packWorkbook(t, "xl/one.xml",
		`<worksheet><sheetData>`+strings.Repeat(`<row/>`, 100_000)+`</sheetData></worksheet>`)
	s, err := openSheet(ctx, book, book.Size(), "")
	if err != nil {
		t.Fatal(err)
	}

	cancel()

	if _, err := s.next(); !errors.Is(err, context.Canceled) {
		t.Errorf("next: got %v, want %v", err, context.Canceled)
	}
	if _, err := readWorkbook(ctx, book); !errors.Is(err, context.Canceled) {
		t.Errorf("open: got %v, want %v", err, context.Canceled)
	}
}

func TestWorkbookBudget(t *testing.T) {
	t.Parallel()

	budget := newWorkbookBudget(10)
	one, other := fair.Key{Account: "one", Part: "a"}, fair.Key{Account: "other"}
	done, err := budget.reserve(t.Context(), one, 8)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := budget.reserve(t.Context(), one, 1); !fault.Is(err, fault.TooMany) {
		t.Errorf("second workbook of a project: got %v, want TooMany", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := budget.reserve(ctx, other, 8); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled while waiting: got %v, want context.Canceled", err)
	}

	entered := make(chan error, 1)
	go func() {
		done, err := budget.reserve(t.Context(), other, 8)
		if err == nil {
			done()
		}

		entered <- err
	}()

	done()
	if err := <-entered; err != nil {
		t.Errorf("waiting workbook: got %v", err)
	}

	if done, err = budget.reserve(t.Context(), one, 10); err != nil {
		t.Errorf("after the release of all: got %v", err)
	} else {
		done()
	}
}
