package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/rest/query"
)

func TestParseFails(t *testing.T) {
	t.Parallel()

	const (
		field     = `field name (* or [a..z0..9_$])`
		operators = `"not" or operator (eq, gt, ...)`
	)
	for _, c := range []struct{ key, value, what, text, column, details string }{
		{"id", "0", "filter", "0", "1", `unexpected "0" expecting ` + operators},
		{"id", "", "filter", "", "1", "unexpected end of input expecting " + operators},
		{"id", "like", "filter", "like", "5", `unexpected end of input expecting "(any)", "(all)" or "."`},
		{"id", "eqx.1", "filter", "eqx.1", "1", `unexpected "e" expecting ` + operators},
		{"id", "EQ.1", "filter", "EQ.1", "1", `unexpected "E" expecting ` + operators},
		{"id", "neq(any).1", "filter", "neq(any).1", "4", `unexpected "(" expecting "."`},
		{"id", "eq(some).1", "filter", "eq(some).1", "3", `unexpected "(" expecting "(any)", "(all)" or "."`},
		{"id", "not.not.eq.1", "filter", "not.not.eq.1", "5", `unexpected "n" expecting operator (eq, gt, ...)`},
		{"id", "fts().a", "filter", "fts().a", "5", `unexpected ")" expecting name of a text search configuration`},
		{"id", "fts(a.b", "filter", "fts(a.b", "6", `unexpected "." expecting ")"`},
		{"id", "is.foo", "filter", "is.foo", "4",
			`unexpected "f" expecting isVal: (null, not_null, true, false, unknown)`},
		{"id", "is.nullx", "filter", "is.nullx", "4",
			`unexpected "n" expecting isVal: (null, not_null, true, false, unknown)`},
		{"id", "is.null.x", "filter", "is.null.x", "8", `unexpected '.' expecting end of input`},
		{"id", "in.1,2", "filter", "in.1,2", "4", `unexpected "1" expecting "("`},
		{"id", "in.(1,2", "filter", "in.(1,2", "8", `unexpected end of input expecting "," or ")"`},
		{"id", "in.(a(b),c)", "filter", "in.(a(b),c)", "9", `unexpected ',' expecting end of input`},

		{"data->>--34", "eq.1", "tree path", "data->>--34", "9", `unexpected "-" expecting digit`},
		{"a..b", "eq.1", "tree path", "a..b", "3", `unexpected "." expecting ` + field},
		{"", "eq.1", "tree path", "", "1", `unexpected end of input expecting ` + field},
		{`"a`, "eq.1", "tree path", `"a`, "3", `unexpected end of input expecting "\""`},
		{`""`, "eq.1", "tree path", `""`, "1", `unexpected """ expecting ` + field},
		{"a(b)", "eq.1", "tree path", "a(b)", "2", `unexpected '(' expecting ".", "->" or end of input`},
		{"a->b->", "eq.1", "tree path", "a->b->", "7",
			`unexpected end of input expecting "-", digit or any non reserved character different from: .,>()`},
		{"a->b.order", "id", "tree path", "a->b.order", "2", `unexpected '-' expecting "." or end of input`},
		{".limit", "1", "tree path", ".limit", "1", `unexpected "." expecting ` + field},
		{"a->b.or", "(c.eq.1)", "logic path", "a->b.or", "2", `unexpected '-' expecting "." or end of input`},
		{".and", "(c.eq.1)", "logic path", ".and", "1", `unexpected "." expecting ` + field},

		{"or", "()", "logic tree", "()", "4",
			`unexpected ")" expecting ` + field + `, negation operator (not) or logic operator (and, or)`},
		{"or", ")(", "logic tree", ")(", "3", `unexpected ")" expecting "("`},
		{"and", "(ord(id.eq.1,id.eq.1),id.eq.2)", "logic tree", "(ord(id.eq.1,id.eq.1),id.eq.2)", "7",
			`unexpected "d" expecting "("`},
		{"or", "(id.eq.1,not.xor(id.eq.2,id.eq.3))", "logic tree", "(id.eq.1,not.xor(id.eq.2,id.eq.3))", "16",
			`unexpected "x" expecting logic operator (and, or)`},
		{"or", "(not.order(id.eq.2))", "logic tree", "(not.order(id.eq.2))", "10", `unexpected "d" expecting "("`},
		{"or", "(id.in.1,2,id.eq.3)", "logic tree", "(id.in.1,2,id.eq.3)", "10", `unexpected "1" expecting "("`},
		{"a.not.or", "(id.foo.1)", "logic tree", "(id.foo.1)", "11", `unexpected "f" expecting ` + operators},
		{"and", "(id.eq.1", "logic tree", "(id.eq.1", "12", `unexpected end of input expecting "," or ")"`},
		{"and", "(id)", "logic tree", "(id)", "7", `unexpected ")" expecting "."`},
		{"and", "(id.is.x)", "logic tree", "(id.is.x)", "11",
			`unexpected "x" expecting isVal: (null, not_null, true, false, unknown)`},
		{"and", "(id.eq.1)x", "logic tree", "(id.eq.1)x", "13", `unexpected 'x' expecting end of input`},
		{"and", `(id.eq."a"b,c)`, "logic tree", `(id.eq."a"b,c)`, "17", `unexpected ")" expecting "."`},

		{"order", "id.asc.nullslasttt", "order", "id.asc.nullslasttt", "17",
			`unexpected 't' expecting "," or end of input`},
		{"order", "", "order", "", "1", `unexpected end of input expecting ` + field},
		{"order", "id,", "order", "id,", "4", `unexpected end of input expecting ` + field},
		{"order", "id.up", "order", "id.up", "4",
			`unexpected "u" expecting "asc", "desc", "nullsfirst" or "nullslast"`},
		{"order", "id.asc.x", "order", "id.asc.x", "8", `unexpected "x" expecting "nullsfirst" or "nullslast"`},
		{"order", "größe,id::int", "order", "größe,id::int", "9", `unexpected ':' expecting "," or end of input`},
		{"order", "a(b.c)", "order", "a(b.c)", "4", `unexpected "." expecting ")"`},

		{"columns", "", "columns parameter", "", "1", `unexpected end of input expecting ` + field},
		{"columns", "a,*", "columns parameter", "a,*", "3", `unexpected "*" expecting ` + field},
		{"on_conflict", "a(", "on_conflict parameter", "a(", "2", `unexpected '(' expecting "," or end of input`},

		{"select", "id,", "select parameter", "id,", "4", `unexpected end of input expecting ` + field},
		{"select", "data->>--34", "select parameter", "data->>--34", "9", `unexpected "-" expecting digit`},
		{"select", "a:*", "select parameter", "a:*", "3", `unexpected "*" expecting ` + field},
		{"select", "a:b:c", "select parameter", "a:b:c", "4", `unexpected ':' expecting "," or end of input`},
		{"select", "a::int[]", "select parameter", "a::int[]", "7", `unexpected '[' expecting "," or end of input`},
		{"select", "a::numeric(10,2)", "select parameter", "a::numeric(10,2)", "11",
			`unexpected '(' expecting "," or end of input`},
		{"select", "a::pg_catalog.int4", "select parameter", "a::pg_catalog.int4", "15",
			`unexpected "i" expecting "sum()", "avg()", "count()", "max()" or "min()"`},
		{"select", `a::"int"`, "select parameter", `a::"int"`, "4",
			`unexpected """ expecting letter, digit, "_" or " "`},
		{"select", "a::int) as x", "select parameter", "a::int) as x", "9",
			`unexpected 'a' expecting "," or end of input`},
		{"select", "a.sum", "select parameter", "a.sum", "3",
			`unexpected "s" expecting "sum()", "avg()", "count()", "max()" or "min()"`},
		{"select", "...a", "select parameter", "...a", "5", `unexpected end of input expecting "!" or "("`},
		{"select", "x:...a(b)", "select parameter", "x:...a(b)", "3", `unexpected "." expecting ` + field},
		{"select", "a(b", "select parameter", "a(b", "4", `unexpected end of input expecting ")" or ","`},
		{"select", "a!inner!left(b)", "select parameter", "a!inner!left(b)", "9",
			`unexpected "l" expecting at most one hint and one of inner and left`},
		{"select", "a!b!c(d)", "select parameter", "a!b!c(d)", "5",
			`unexpected "c" expecting at most one hint and one of inner and left`},
		{"select", "projects(count)'", "select parameter", "projects(count)'", "16",
			`unexpected ''' expecting "," or end of input`},
	} {
		raw := escape(c.key) + "=" + escape(c.value)

		want := &query.Error{
			Status:  400,
			Code:    "PGRST100",
			Message: fmt.Sprintf(`"failed to parse %s (%s)" (line 1, column %s)`, c.what, c.text, c.column),
			Details: c.details,
		}

		fails(t, raw, query.Options{}, want)
	}
}

func TestParseFailsOnItsOwnTerms(t *testing.T) {
	t.Parallel()

	negative := query.Error{Status: 416, Code: "PGRST103", Message: "Requested range not satisfiable",
		Details: "Limit should be greater than or equal to zero."}
	for raw, want := range map[string]query.Error{
		"limit=-1":         negative,
		"limit=-1&limit=x": negative,
		"limit=-1&order=": {Status: 400, Code: "PGRST100", Message: `"failed to parse order ()" (line 1, column 1)`,
			Details: "unexpected end of input expecting field name (* or [a..z0..9_$])"},
		"limit=9223372036854775808": {Status: 400, Code: "22003",
			Message: `value "9223372036854775808" is out of range for type bigint`},
		"a.offset=-9223372036854775809": {Status: 400, Code: "22003",
			Message: `value "-9223372036854775809" is out of range for type bigint`},
		"a->2147483648=eq.1": {Status: 400,
			Code: "22003", Message: `value "2147483648" is out of range for type integer`},
		"a=eq.%00":        {Status: 400, Code: "22021", Message: `invalid byte sequence for encoding "UTF8": 0x00`},
		"%22a%00%22=eq.1": {Status: 400, Code: "22021", Message: `invalid byte sequence for encoding "UTF8": 0x00`},
		"order=a%0Ab,%0A..": {Status: 400,
			Code: "PGRST100", Message: "\"failed to parse order (a\nb,\n..)\" (line 2, column 1)",
			Details: `unexpected 'b' expecting "," or end of input`},
		"or=(a.eq.1,%0A%0A..)": {Status: 400,
			Code: "PGRST100", Message: "\"failed to parse logic tree ((a.eq.1,\n\n..))\" (line 3, column 1)",
			Details: `unexpected "." expecting field name (* or [a..z0..9_$]), negation operator (not) or logic ` +
				`operator (and, or)`},
	} {
		fails(t, raw, query.Options{}, &want)
	}
}

func TestParseFailsOnArguments(t *testing.T) {
	t.Parallel()

	for raw, details := range map[string]string{
		"a=in.x":     `unexpected "x" expecting "("`,
		"a=is.x":     `unexpected "x" expecting isVal: (null, not_null, true, false, unknown)`,
		"a=not.here": `unexpected "h" expecting operator (eq, gt, ...)`,
		"a->=1":      `unexpected end of input expecting "-", digit or any non reserved character different from: .,>()`,
	} {
		_, err := query.Parse(raw, query.Options{RPC: true})
		e, ok := errors.AsType[*query.Error](err)
		if !ok || e.Code != "PGRST100" || e.Details != details {
			t.Errorf("Parse(%q) = %+v, want details %s", raw, err, details)
		}
	}
}

func TestParseIsBounded(t *testing.T) {
	t.Parallel()

	deep := func(open, inner string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(")", n)
	}
	parse(t, "select="+deep("a(", "b", 64), query.Options{})
	parse(t, "and=("+deep("or(", "b.eq.1", 63)+")", query.Options{})

	var orders, limits strings.Builder
	for i := range 257 {
		fmt.Fprintf(&orders, "a%d.order=x&", i)
		fmt.Fprintf(&limits, "a%d.limit=1&", i)
	}

	for raw, details := range map[string]string{
		"select=" + deep("a(", "b", 65):            `unexpected "(" expecting at most 64 levels`,
		"and=(" + deep("or(", "b.eq.1", 64) + ")":  `unexpected "(" expecting at most 64 levels`,
		"select=" + strings.Repeat("...a(", 50000): `unexpected "(" expecting at most 64 levels`,
		orders.String(): "unexpected relation expecting at most 256 of them",
		limits.String(): "unexpected relation expecting at most 256 of them",
	} {
		_, err := query.Parse(raw, query.Options{})
		e, ok := errors.AsType[*query.Error](err)
		if !ok || e.Code != "PGRST100" || e.Details != details {
			t.Errorf("Parse(%.40q…) = %v, want details %s", raw, e, details)
		}
	}
}

func fails(t *testing.T, raw string, o query.Options, want *query.Error) {
	t.Helper()

	q, err := query.Parse(raw, o)
	e, ok := errors.AsType[*query.Error](err)
	if !ok {
		t.Errorf("Parse(%q) = %+v, %v, want %v", raw, q, err, want)
		return
	}

	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("Parse(%q) (-want +got):\n%s", raw, diff)
	}
}
