package rest

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

func TestConfigured(t *testing.T) {
	t.Parallel()

	maxRows := int64(2)
	a := newAPI(t, `
		create function check_all() returns void language plpgsql as $$ begin
			if current_setting('request.path') = '/projects' then raise sqlstate 'PT403' using message = 'not these'; end if;
			perform set_config('response.headers', '[{"X-Seen":"yes"}]', true); end $$;
		create function root() returns json language sql as $$ select '{"swagger":"2.0"}'::json $$;
		create function bad_headers() returns int language sql as $$ select set_config('response.headers', '{}', true); select 1 $$;
		create function bad_status() returns int language sql as $$ select set_config('response.status', 'x', true); select 1 $$;
		create domain "text/html" as text;
		create function page() returns "text/html" language sql as $$ select '<b>hi</b>'::"text/html" $$;
		create domain "image/png" as bytea;
		create function image() returns "image/png" language sql as $$ select '\x89504e47'::"image/png" $$;
		create function isolated() returns text language sql set default_transaction_isolation = 'serializable' as $$ select current_setting('transaction_isolation') $$;
		create function timed() returns text language sql stable set statement_timeout = '7s' as $$ select current_setting('statement_timeout') $$`,
		func(c *Config) {
			c.PreRequest = catalog.Name{Schema: "public", Name: "check_all"}
			c.RootSpec = catalog.Name{Schema: "public", Name: "root"}
			c.Features.Plan, c.Features.ServerTiming, c.Limits.MaxRows, c.Limits.MaxBody = true, true, &maxRows, 100
			c.Origins = []string{"https://ours"}
			c.Settings = map[string]string{"app.settings.name": "socle"}
			inner := c.Auth.Role

			c.Auth.Role = func(name string) (Role, bool) {
				r, ok := inner(name)
				r.Settings = map[string]string{"work_mem": "5MB", "default_transaction_isolation": "repeatable read"}

				return r, ok
			}
		})

	for _, test := range []struct {
		method, path, body string
		headers            []string
		status             int
		want               string
		has                []string
	}{
		{"GET", "/projects", "", nil, 403, `"code":"PT403"`, nil},
		{"GET", "/clients?select=id&id=eq.1", "", nil, 200, `[{"id":1}]`, []string{"X-Seen", "yes"}},
		{"GET", "/clients?select=id", "", []string{"Prefer", "count=exact"}, 206, `{"id":2}]`,
			[]string{"Content-Range", "0-1/3"}},
		{"GET", "/clients?select=id", "", []string{"Prefer", "count=estimated"}, 206, `{"id":2}]`, nil},
		{"GET", "/", "", nil, 200, `{"swagger":"2.0"}`, nil},
		{"POST", "/", "", nil, 405, "PGRST117", nil},
		{"POST", "/rpc/bad_headers", "", nil, 500, "PGRST111", nil},
		{"POST", "/rpc/bad_status", "", nil, 500, "PGRST112", nil},
		{"GET", "/rpc/page", "", []string{"Accept", "text/html"}, 200, "<b>hi</b>",
			[]string{"Content-Type", "text/html"}},
		{"GET", "/rpc/page", "", []string{"Accept", "text/css, text/html;q=0.5"}, 200, "<b>hi</b>", nil},
		{"GET", "/rpc/page", "", nil, 200, `"<b>hi</b>"`, nil},
		{"GET", "/rpc/image", "", []string{"Accept", "image/png"}, 200, "\x89PNG",
			[]string{"Content-Type", "image/png"}},
		{"POST", "/rpc/isolated", "", nil, 200, `"serializable"`, nil},
		{"GET", "/rpc/timed", "", nil, 200, `"7s"`, nil},
		{"GET", "/rpc/setting?name=work_mem", "", nil, 200, `"5MB"`, nil},
		{"GET", "/rpc/setting?name=transaction_isolation", "", nil, 200, `"repeatable read"`, nil},
		{"GET", "/rpc/setting?name=transaction_read_only", "", nil, 200, `"on"`, nil},
		{"GET", "/rpc/setting?name=app.settings.name", "", nil, 200, `"socle"`, nil},
		{"GET", "/clients?id=eq.1", "",
			[]string{"Accept", `application/vnd.pgrst.plan+json; for="application/json"; options=analyze|verbose;`},
			200, `"Plan"`,
			[]string{"Content-Type",
				`application/vnd.pgrst.plan+json; for="application/json"; options=analyze|verbose; charset=utf-8`}},
		{"GET", "/clients?id=eq.1", "",
			[]string{"Accept", `application/vnd.pgrst.plan+text; for="application/json"; options=;`}, 200, "Aggregate",
			nil},
		{"DELETE", "/clients?id=eq.3", "", []string{"Accept", `application/vnd.pgrst.plan`}, 200, "Delete on", nil},
		{"GET", "/clients?select=id&id=eq.3", "", nil, 200, `[{"id":3}]`, nil},
		{"GET", "/clients?select=id,name&id=eq.3", "",
			[]string{"Accept", "application/vnd.pgrst.array+json;nulls=stripped"}, 200, `"Cid"`,
			[]string{"Content-Type", "application/vnd.pgrst.array+json;nulls=stripped; charset=utf-8"}},
		{"POST", "/clients", `{"id":5,"name":"` + strings.Repeat("x", 100) + `"}`, nil, 413, "too large", nil},
		{"GET", "/clients?id=eq.1", "", []string{"Origin", "https://ours"}, 200, "Ada",
			[]string{"Access-Control-Allow-Origin", "https://ours", "Access-Control-Allow-Credentials", "true"}},
		{"GET", "/clients?id=eq.1", "", []string{"Origin", "https://theirs"}, 200, "Ada",
			[]string{"Access-Control-Allow-Origin", ""}},
	} {
		got := a.do(test.method, test.path, test.body, test.headers...)
		if got.status != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s %s: status %d, want %d: %s", test.method, test.path, got.status, test.status, got.body)
			continue
		}

		for i := 0; i < len(test.has); i += 2 {
			if v := got.header.Get(test.has[i]); v != test.has[i+1] {
				t.Errorf("%s %s: %s: %q, want %q", test.method, test.path, test.has[i], v, test.has[i+1])
			}
		}

		if got.status < 300 && !strings.HasPrefix(got.header.Get("Server-Timing"), "jwt;dur=") {
			t.Errorf("%s %s: Server-Timing %q", test.method, test.path, got.header.Get("Server-Timing"))
		}
	}
}

func TestAnonymousIsRefused(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "", func(c *Config) { c.Auth.Anonymous, c.Auth.Verify = "", nil })
	if got := a.do("GET", "/clients", "", "Authorization", ""); got.status != 401 ||
		!strings.Contains(got.body, "PGRST302") || got.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%+v", got)
	}

	if got := a.do("GET", "/clients", ""); got.status != 500 || !strings.Contains(got.body, "PGRST300") {
		t.Errorf("%+v", got)
	}
}

func TestAppendJSON(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"": `""`, "plain": `"plain"`, "a\"b\\c": `"a\"b\\c"`, "\x00\n\t\x1f": `"\u0000\n\t\u001f"`, "grün": `"grün"`,
		"a\xffb": "\"a\uFFFDb\"", "\xff": "\"\uFFFD\"",
	} {
		if got := string(appendJSON(nil, in)); got != want {
			t.Errorf("appendJSON(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestAccepted(t *testing.T) {
	t.Parallel()

	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Add("Accept", `text/*;q=0.5, TEXT/HTML ,, application/vnd.pgrst.plan+text; for="a,b"; options=;`)
	r.Header.Add("Accept", "*/*;q=0.8, a/b;q=0.8")

	var got []string
	for _, w := range parseAccept(r.Header["Accept"]) {
		got = append(got, w.name)
	}

	if want := "text/html application/vnd.pgrst.plan+text a/b */* text/*"; strings.Join(got, " ") != want {
		t.Errorf("accepted: %s, want %s", strings.Join(got, " "), want)
	}
}
