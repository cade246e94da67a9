package pgdump

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// part is a statement of a dump with its rows.
type part struct {
	Line int
	Text string
	Rows string
}

// read returns the parts of a dump, up to an error.
func read(in io.Reader) ([]part, error) {
	var parts []part
	r := newReader(in)
	for {
		s, err := r.next()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return parts, err
		}

		p := part{Line: s.line, Text: s.Text}
		if !s.command && s.Words[0] == "copy" {
			data := r.data()
			rows, err := io.ReadAll(data)
			if err != nil {
				return parts, err
			}
			if n, err := data.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				return parts, fmt.Errorf("read %d bytes after the end, %w", n, err)
			}

			p.Rows = string(rows)
		}

		parts = append(parts, p)
	}
}

func TestReader(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]part{
		"":                                     nil,
		" \n-- a\n/* ; */;":                    nil,
		"select 1":                             {{Line: 1, Text: "select 1"}},
		"select 1; -- c\n\n/*\n*/ select\n2 ;": {{Line: 1, Text: "select 1"}, {Line: 4, Text: "select\n2 "}},
		"\\restrict a;b\nselect ';\n';\n\\connect x\r\n\\unrestrict": {{Line: 1, Text: `\restrict a;b`},
			{Line: 2, Text: "select ';\n'"}, {Line: 4, Text: `\connect x`}, {Line: 5, Text: `\unrestrict`}},
		"create function f() as $$a;\n\\b$$;select 1": {{Line: 1, Text: "create function f() as $$a;\n\\b$$"},
			{Line: 2, Text: "select 1"}},
		"COPY t FROM stdin;\n1\t\\N\n\\\\.\n\\.x\n\\.\n\nselect 1;": {
			{Line: 1, Text: "COPY t FROM stdin", Rows: "1\t\\N\n\\\\.\n\\.x\n"}, {Line: 7, Text: "select 1"}},
		"copy t from stdin;\n\\.\ncopy t from stdin;\r\na\r\n\\.\r\n-- x\ncopy t from stdin;\nb\n\\.": {
			{Line: 1, Text: "copy t from stdin"}, {Line: 3, Text: "copy t from stdin", Rows: "a\r\n"},
			{Line: 7, Text: "copy t from stdin", Rows: "b\n"}},
	} {
		for name, in := range map[string]io.Reader{
			"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)),
		} {
			got, err := read(in)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%q, %s: %v, (-want +got)\n%s", text, name, err, diff)
			}
		}
	}
}

// TestReaderOfLargeDump reads statements and rows larger than the window.
func TestReaderOfLargeDump(t *testing.T) {
	t.Parallel()

	long := "select '" + strings.Repeat("a;\n", minWindow) + "'"
	rows := strings.Repeat(strings.Repeat("b", minWindow+1)+"\n", 3) + strings.Repeat("c\t\\N\n", minWindow)
	small := strings.Repeat("insert into t values (1);\n", 20_000)

	got, err := read(iotest.HalfReader(strings.NewReader(
		small + long + ";\ncopy t from stdin;\n" + rows + "\\.\nselect 2;")))
	if err != nil || len(got) != 20_003 {
		t.Fatalf("got %d parts, %v", len(got), err)
	}

	if p := got[20_000]; p.Text != long || p.Line != 20_001 {
		t.Errorf("got a statement of %d bytes in line %d, want %d in line 20001", len(p.Text), p.Line, len(long))
	}

	first := 20_001 + minWindow + 1
	if p := got[20_001]; p.Rows != rows || p.Line != first {
		t.Errorf("got rows of %d bytes in line %d, want %d in line %d", len(p.Rows), p.Line, len(rows), first)
	}
	if p, want := got[20_002], first+3+minWindow+2; p.Line != want {
		t.Errorf("got the last statement in line %d, want %d", p.Line, want)
	}
}

// TestReaderOfCutOffDump names the line at which a dump that ends half-way ends.
func TestReaderOfCutOffDump(t *testing.T) {
	t.Parallel()

	const head = "--\n-- PostgreSQL database dump\n--\n"
	for text, want := range map[string]int{
		"select 1;\nselect 'a":                        2,
		"select 1;\n\nselect $a$;":                    3,
		"select 1; /*":                                1,
		"select 1;\ncopy t from stdin;\n1\n2":         2,
		"select 1;\ncopy t from stdin;\n1\n2\n\\":     2,
		"select 1;\ncopy t from stdin;":               2,
		head + "select 1;\n":                          5,
		head + "select 1;\nselect 2":                  5,
		head + "copy t from stdin;\n\\.\n-- Postgre":  6,
		head + "create table a (\n  b text,\n  c tex": 4,
	} {
		_, err := read(strings.NewReader(text))

		e, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, errCutOff) || e.Line != want {
			t.Errorf("%q: got %v, want it to be cut off in line %d", text, err, want)
		}
	}

	if _, err := read(strings.NewReader(head + "select 1;\n" + endComment + "\n")); err != nil {
		t.Errorf("a complete dump: %v", err)
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()

	r := newReader(strings.NewReader(`
--
-- Name: SCHEMA auth; Type: ACL; Schema: -; Owner: supabase_admin
--

GRANT USAGE ON SCHEMA auth TO anon;

--
-- Data for Name: users; Type: TABLE DATA; Schema: auth; Owner: supabase_auth_admin
--

COPY auth.users (id) FROM stdin;
\.

-- Name: a b; Type: TABLE; Schema: public; Owner: -; Tablespace: fast
create table "a b" ();
create table c ();
`))
	for _, want := range []header{{"ACL", "-", "supabase_admin"}, {"TABLE DATA", "auth", "supabase_auth_admin"},
		{"TABLE", "public", "-"}, {"TABLE", "public", "-"}} {
		s, err := r.next()
		if err != nil || s.header != want {
			t.Errorf("%s: got %+v, %v, want %+v", s.Text, s.header, err, want)
		}

		if s.Words[0] == "copy" {
			if _, err := io.Copy(io.Discard, r.data()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// FuzzReader checks that a dump has the same parts however it arrives.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{"select 1;", "copy t from stdin;\n\\.\n", "\\c\n", "/*", "copy\n\\.", "--\n\\.\n;",
		"copy t from stdin;\n\n\\.\r\n;a", "'\\.\n", "copy;\n\\.copy;\na\\.\n"} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		want, wantErr := read(strings.NewReader(text))
		got, err := read(iotest.OneByteReader(strings.NewReader(text)))

		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (wantErr == nil) {
			t.Errorf("%q: %v and %v, differ by\n%s", text, wantErr, err, diff)
		}
	})
}
