package sqllex

import (
	"bufio"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestLexer(t *testing.T) {
	t.Parallel()

	type tokens []struct {
		Kind Kind
		Text string
	}
	for text, want := range map[string]tokens{
		"":            nil,
		" \t\r\n\f\v": nil,
		"Select a1, _b, é$1": {
			{Word, "Select"}, {Word, "a1"}, {Punctuation, ","}, {Word, "_b"}, {Punctuation, ","},
			{Word, "é$1"},
		},
		`"a ""b""" U&"c" u &`: {{QuotedName, `"a ""b"""`}, {QuotedName, `U&"c"`}, {Word, "u"}, {Operator, "&"}},
		`'it''s' 'a\' N'b'`:   {{String, `'it''s'`}, {String, `'a\'`}, {String, `N'b'`}},
		`E'a\'b\\' u&'\'`:     {{String, `E'a\'b\\'`}, {String, `u&'\'`}},
		`ae'x' b'1'x'f'`:      {{Word, "ae"}, {String, "'x'"}, {String, "b'1'"}, {String, "x'f'"}},
		"$$a$b$$ $t$ $$ $t$":  {{DollarString, "$$a$b$$"}, {DollarString, "$t$ $$ $t$"}},
		"a$b$c $1 $a b": {
			{Word, "a$b$c"}, {Parameter, "$1"}, {Punctuation, "$"}, {Word, "a"}, {Word, "b"},
		},
		"a--b'\nc /* /* ' */*/": {{Word, "a"}, {Comment, "--b'"}, {Word, "c"}, {Comment, "/* /* ' */*/"}},
		"a+--b":                 {{Word, "a"}, {Operator, "+"}, {Comment, "--b"}},
		"a*/*b*/-":              {{Word, "a"}, {Operator, "*"}, {Comment, "/*b*/"}, {Operator, "-"}},
		"a<>-1 @-+b": {
			{Word, "a"}, {Operator, "<>"}, {Operator, "-"}, {Number, "1"}, {Operator, "@-+"},
			{Word, "b"},
		},
		"1 1.5 .5 2. 1e-3 1e5": {
			{Number, "1"}, {Number, "1.5"}, {Number, ".5"}, {Number, "2."}, {Number, "1e-3"},
			{Number, "1e5"},
		},
		"0xfF 1_000.5 1..2 1a": {
			{Number, "0xfF"}, {Number, "1_000.5"}, {Number, "1"}, {Punctuation, "."}, {Number, ".2"},
			{Number, "1a"},
		},
		"1e-a": {{Number, "1e"}, {Operator, "-"}, {Word, "a"}},
		"a::b.c[1:2]": {
			{Word, "a"}, {Punctuation, ":"}, {Punctuation, ":"}, {Word, "b"}, {Punctuation, "."},
			{Word, "c"}, {Punctuation, "["}, {Number, "1"}, {Punctuation, ":"}, {Number, "2"},
			{Punctuation, "]"},
		},
		"e'a'\n'\\''":         {{String, "e'a'"}, {String, `'\''`}},
		"e'a' -- x\n '\\'' c": {{String, "e'a'"}, {Comment, "-- x"}, {String, `'\''`}, {Word, "c"}},
		`e'a' '\'`:            {{String, "e'a'"}, {String, `'\'`}},
		"e'a' /* */\n'\\'":    {{String, "e'a'"}, {Comment, "/* */"}, {String, `'\'`}},
		"'a'\n'\\'":           {{String, "'a'"}, {String, `'\'`}},
	} {
		var got tokens
		l := New(text)
		for token, ok := l.Next(); ok; token, ok = l.Next() {
			got = append(got, tokens{{token.Kind, text[token.Start:token.End]}}...)

			if token.Open {
				t.Errorf("%q: the token %q is open", text, text[token.Start:])
			}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tokens of %q (-want +got):\n%s", text, diff)
		}
	}
}

// TestOpen checks that a quote or comment without an end reaches to the end of the text.
func TestOpen(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"'a;", `e'a\'`, `e'\`, `"a;`, `U&"`,
		"$$a;$", "$a$;$b$", "/* /* */", "/*/", "b'", "'a''",
	} {
		got, ok := New(text).Next()
		if !ok || !got.Open || got.Start != 0 || got.End != len(text) {
			t.Errorf("first token of %q = %+v, %t, want the whole text, open", text, got, ok)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()

	const text = " -- é;\nselect ';';\n'a';; create or replace function f() begin atomic; case when a then b; end; end;" +
		"create table t (a; b);("
	want := []Statement{
		{Text: " -- é;\nselect ';'", Char: 0, Words: []string{"select"}},
		{Text: "\n'a'", Char: 18, Words: []string{""}},
		{Text: " create or replace function f() begin atomic; case when a then b; end; end", Char: 24,
			Words: []string{"create", "or", "replace", "function"}},
		{Text: "create table t (a; b)", Char: 99, Words: []string{"create", "table", "t", "a"}},
		{Text: "(", Char: 121, Words: []string{""}},
	}
	if diff := cmp.Diff(want, Split(text)); diff != "" {
		t.Errorf("Split(%q) (-want +got):\n%s", text, diff)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()

	type cut struct {
		Text, Rest string
		OK         bool
	}
	for text, want := range map[string]cut{
		"":                           {},
		"select ';'":                 {Text: "select ';'"},
		" select 1 ; select 2;":      {Text: " select 1 ", Rest: " select 2;", OK: true},
		"do $$;$$;\n1;":              {Text: "do $$;$$", Rest: "\n1;", OK: true},
		"; a":                        {Rest: " a", OK: true},
		"copy t from stdin;\n1\n\\.": {Text: "copy t from stdin", Rest: "\n1\n\\.", OK: true},
	} {
		s, rest, ok := Cut(text)
		if got := (cut{s.Text, rest, ok}); got != want {
			t.Errorf("Cut(%q): got %+v, want %+v", text, got, want)
		}
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		"select 1": false, "select 1;": true, "select ';": false, "select $$;": false, "select $$;$$;": true,
		"select 1; -- done": true, "select 1; select": false, "": true,
		"create function f() returns int begin atomic select 1;": false,
	} {
		if got := Complete(text); got != want {
			t.Errorf("Complete(%q): got %v, want %v", text, got, want)
		}
	}
}

// TestScanStatement reads statements byte by byte, within a bound.
func TestScanStatement(t *testing.T) {
	t.Parallel()

	s := bufio.NewScanner(iotest.OneByteReader(strings.NewReader(
		"select 'a;''b'; ;-- c\n; do $x$;$y$;$x$; end" + strings.Repeat(" ", 100))))
	s.Buffer(nil, 32)
	s.Split(ScanStatement)

	var got []string
	for s.Scan() {
		got = append(got, strings.TrimSpace(s.Text()))
	}

	want := []string{"select 'a;''b'", "do $x$;$y$;$x$"}
	if !slices.Equal(got, want) || s.Err() != bufio.ErrTooLong {
		t.Errorf("got %q, %v, want %q and %v", got, s.Err(), want, bufio.ErrTooLong)
	}
}

// FuzzLexer checks that tokens are in order with nothing but space between them, and that a stream
// has the statements of its text.
func FuzzLexer(f *testing.F) {
	for _, seed := range []string{
		"select 1; é", "e'\\", "$a$", "/*", "create function f() begin atomic case", "'\n'", "\xff;",
		"E'a' --\n'\\'';b;",
		"1e-;.;..;1_", "@-+--", "U&\"a\";$1a;$$;$$", ";;", "a;b",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		l := New(text)
		for token, ok := l.Next(); ok; token, ok = l.Next() {
			if token.Kind == 0 || token.Start < end || token.End <= token.Start || token.End > len(text) ||
				strings.Trim(text[end:token.Start], " \t\r\n\f\v") != "" || token.Open && token.End < len(text) ||
				token.Char != utf8.RuneCountInString(text[:token.Start]) {
				t.Fatalf("%q: got %+v after byte %d", text, token, end)
			}

			end = token.End
		}
		if strings.Trim(text[end:], " \t\r\n\f\v") != "" {
			t.Fatalf("%q: the last token ends at %d", text, end)
		}

		var want, got []string
		rest := text
		for _, s := range Split(text) {
			i := strings.Index(rest, s.Text)
			if i < 0 || len(s.Words) == 0 {
				t.Fatalf("%q: %+v is no statement of the rest", text, s)
			}

			want, rest = append(want, s.Text), rest[i+len(s.Text):]
		}

		s := bufio.NewScanner(iotest.HalfReader(strings.NewReader(text)))
		s.Buffer(nil, len(text)+2)
		s.Split(ScanStatement)

		for s.Scan() {
			got = append(got, s.Text())
		}
		if !slices.Equal(got, want) || s.Err() != nil {
			t.Fatalf("%q: the stream has %q (%v), the text %q", text, got, s.Err(), want)
		}
	})
}
