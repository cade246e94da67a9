package requestlog

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

func TestCutQuery(t *testing.T) {
	t.Parallel()

	for raw, want := range map[string]string{
		"":                                         "",
		"author=eq.Austen&select=id,a":             "author=eq.…&select=id,a",
		"select=id%2Cauthor%28name%29":             "select=id,author(name)",
		"id=in.(1,2)&id=not.is.null":               "id=in.…&id=not.is.null",
		"done=is.true&x=not.in.(1)":                "done=is.…&x=not.in.…",
		"name=like(any).{a*}":                      "name=like(any).…",
		"t=fts(english).cat":                       "t=fts(…).…",
		"t=eq(secret).cat":                         "t=eq(…).…",
		"or=(a.eq.1,not.and(b.gt.2,c.is.null))":    "or=(a.eq.…,not.and(b.gt.…,c.is.null))",
		`or=(a.eq."x,b.eq.y",data->>k.in.(1,2))`:   "or=(a.eq.…,data->>k.in.…)",
		"books.or=(a.eq.1)&books.order=a.desc":     "books.or=(a.eq.…)&books.order=a.desc",
		"or=(a.eq.1":                               "or=…",
		"or=(a.cs.{x.b.in.y,z.c.is.null},id.eq.1)": "or=(a.cs.…,id.eq.…)",
		"and=(or(b.eq.a,a.ov.{x,secret.eq.y}))":    "and=(or(b.eq.…,a.ov.…))",
		`or=("a.b".eq.1)`:                          `or=("a.b".eq.…)`,
		`or=("a".foo.secret.eq.x)`:                 "or=(…)",
		"or=(a.foo.secret.eq.x)":                   "or=(…)",
		"limit=10&offset=20":                       "limit=10&offset=20",
		"limit=4915112345678":                      "limit=…",
		"order=title.desc.nullslast":               "order=title.desc.nullslast",
		"a=5&b=eq":                                 "a=…&b=…",
		"secret":                                   "…",
		"%zz=1&a%00=1&=1":                          "…&…&…",
		"select=" + strings.Repeat("a", 64):        "select=…",
	} {
		if got := cutQuery(raw, true); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}

	if got := cutQuery("grant_type=password&select=secret&limit=7", false); got != "grant_type=…&select=…&limit=…" {
		t.Errorf("of another interface: got %q", got)
	}
	if got := cutQuery(strings.Repeat("a=eq.1&", 5000), true); len(got) > maxQuery+20 || !strings.HasSuffix(got, "&…") {
		t.Errorf("got %d bytes, ending in %q", len(got), got[len(got)-9:])
	}
}

// TestCutQueryKeepsNoValue cuts random queries, valid and broken ones: no value survives.
func TestCutQueryKeepsNoValue(t *testing.T) {
	t.Parallel()

	pick := func(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		value := func() string {
			return pick(r, "", "%", "\"", "'", "(", "{", ",", ".", " ", "é") + "canary" +
				pick(r, "", ")", "\"", ",", "\x00", "\n", ".eq.canary", ",a.eq.canary", "canary()", "&", "=")
		}

		var condition func(depth int) string
		condition = func(depth int) string {
			if depth > 0 && r.IntN(3) == 0 {
				return pick(r, "and", "or", "not.and") + "(" + condition(depth-1) + "," + condition(depth-1) + ")"
			}
			// Behind a comma without quotes a column follows, whatever the client meant.
			return pick(r, "a", "data->>k", "t.a") + "." + pick(r, "not.", "") + pick(r, operators...) + "." +
				strings.TrimPrefix(value(), ",")
		}

		var pairs []string
		for range 1 + r.IntN(4) {
			pair := pick(r, "a", "data->>k", "t.a", "apikey", "%61") + "=" +
				url.QueryEscape(pick(r, "not.", "")+pick(r, operators...)+
					pick(r, ".", "(any).", "(canary).", "")+value())
			switch r.IntN(4) {
			case 0:
				pair = pick(r, "or", "and", "t.not.or") + "=" + url.QueryEscape("("+condition(3)+")")
			case 1:
				pair = "argument=" + url.QueryEscape(value())
			}
			if r.IntN(10) == 0 { // broken
				pair = strings.ReplaceAll(pair, "%28", "")
			}

			pairs = append(pairs, pair)
		}

		raw := strings.Join(pairs, "&")
		for _, rows := range []bool{true, false} {
			if got := cutQuery(raw, rows); strings.Contains(got, "canary") {
				t.Errorf("seed %d: %s: got %q", seed, raw, got)
			}
		}
	}
}

func TestCutMessage(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ code, text, want string }{
		{"42501", "permission denied for table books", "permission denied for table books"},
		{"23505", `duplicate key value violates unique constraint "books_pkey"`,
			`duplicate key value violates unique constraint "books_pkey"`},
		{"22P02", `invalid input syntax for type uuid: "secret"`, "invalid input syntax for type uuid: …"},
		{"22003", `value "99" is out of range for type integer`, `value "…" is out of range for type integer`},
		{"22021", `invalid byte sequence for encoding "UTF8": 0xff`, `invalid byte sequence for encoding "…": …`},
		{"42601", `syntax error in tsquery: "fat secret"`, `syntax error in tsquery: "…"`},
		{"RouteNotFound", "Route GET:/objects/public/a/secret.pdf not found", "Route GET:… not found"},
		{"P0001", `the order "7" is closed`, `the order "7" is closed`},
		{"PGRST100", `"failed to parse filter (a(b) "x")" (line 1, column 1)`,
			`"failed to parse filter (…)" (line 1, column 1)`},
		{"PGRST202", `Could not find the function public.add("a b") in the schema cache`,
			`Could not find the function public.add("a b") in the schema cache`},
		{"PGRST107", "None of these media types are available: secret", "None of these media types are available: …"},
		{"email_address_invalid", `Email address "ada" <"x"@y> is invalid`, `Email address "…"@y> is invalid`},
		{"XX000", "first\nsecond", "first"},
		{"42703", strings.Repeat("ü", 400), strings.Repeat("ü", (maxMessage-len(cutMark))/2) + "…"},
	} {
		if got := cutMessage(c.code, c.text); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.code, c.text, got, c.want)
		}
	}
}

func TestRouteOf(t *testing.T) {
	t.Parallel()

	const project = "/projects/{projectUUID}"
	for _, c := range []struct{ route, prefix, target, want string }{
		{"GET /tables", "", "", "/tables"},
		{project + "/backups", "", "", project + "/backups"},
		{"", "", "", ""},
		{"a", "", "", "a"},
		{project + "/rest/v1", "/rest/v1", "/books", "/rest/v1/books"},
		{project + "/rest/v1", "/rest/v1", "/rpc/add", "/rest/v1/rpc/add"},
		{project + "/rest/v1", "/rest/v1", "/", "/rest/v1"},
		{project + "/rest/v1", "/rest/v1", "/my%20books", "/rest/v1/my books"},
		{project + "/rest/v1", "/rest/v1", "/a/b", "/rest/v1/a/…"},
		{project + "/rest/v1", "/rest/v1", "/rpc/a/b", "/rest/v1/rpc/…"},
		{project + "/rest/v1", "/rest/v1", "/%zz", "/rest/v1/…"},
		{project + "/rest/v1", "/rest/v1", "/a%00", "/rest/v1/…"},
		{project + "/storage/v1/object", "/storage/v1", "photos", "/storage/v1/object/photos"},
		{project + "/auth/v1/token", "/auth/v1", "", "/auth/v1/token"},
		{project + "/rest/v1", "/rest/v1", "/" + strings.Repeat("a", 500),
			"/rest/v1/" + strings.Repeat("a", maxTarget-len(cutMark)) + "…"},
	} {
		if got := routeOf(&record{route: c.route, prefix: c.prefix, target: c.target}); got != c.want {
			t.Errorf("%v: got %q, want %q", c, got, c.want)
		}
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"": "100 599 <nil>", "404": "404 404 <nil>", "4xx": "400 499 <nil>", "5XX": "500 599 <nil>",
	} {
		low, high, err := parseStatus(text)
		if got := fmt.Sprint(low, high, err); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}

	for _, text := range []string{"x", "99", "600", "xx", "0xx", "6xx", "44xx", "-1"} {
		if _, _, err := parseStatus(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
