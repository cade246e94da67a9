package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// foreignHeaders are headers that would affect the origin shared by all projects.
var foreignHeaders = []string{
	"Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "NEL", "Report-To", "Reporting-Endpoints", "Alt-Svc",
	"Service-Worker-Allowed", "X-Request-Id", "X-Content-Type-Options", "X-Frame-Options", "X-Accel-Redirect",
	"X-Sendfile", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Content-Security-Policy",
	"Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade", "WWW-Authenticate", "Refresh",
	"Set-Cookie2", "Public-Key-Pins", "Expect-CT", "Origin-Agent-Cluster", "Cross-Origin-Opener-Policy",
	"Permissions-Policy", "Server", "Date", "Proxy-Authenticate", "SourceMap",
}

// TestHeadersOfProjects checks that user code can set headers that describe its response, and no
// others.
func TestHeadersOfProjects(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	quoted := `{"` + strings.Join(foreignHeaders, `":"forged"},{"`) + `":"forged"},{"set-cookie":"forged"}`

	run := func(sql string) {
		t.Helper()

		conn := s.ConnectProject()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	headers := strings.ReplaceAll(quoted, "'", "''")
	run(`create domain public."text/html" as text;
		create function public.forge() returns int language sql as $$
			select set_config('response.headers', '[` + headers + `,{"Cache-Control":"max-age=60"},{"X-Total-Count":"7"},{"Content-Language":"de"}]', true); select 1 $$;
		create function public.forge_failure() returns int language plpgsql as $$ begin
			raise sqlstate 'PGRST' using message = '{"code":"1","message":"<b>no</b>"}',
				detail = '{"status":402,"headers":{` + strings.Trim(strings.ReplaceAll(headers, "},{", ","), "{}") + `,"X-Powered-By":"tests","Content-Type":"text/html"}}'; end $$;
		create function public.page() returns "text/html" language sql as $$ select '<script>alert(1)</script>'::"text/html" $$;
		create function public.disguised() returns int language sql as $$
			select set_config('response.headers', '[{"Content-Type":"application/json"},{"Content-Type":"image/svg+xml"},{"Content-Security-Policy":"script-src *"}]', true); select 1 $$;
		grant execute on all functions in schema public to service_role; notify pgrst`)

	get := func(path, accept string) *http.Response {
		t.Helper()

		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/projects/"+s.Project+"/rest/v1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}

		r.Header.Set("apikey", s.secret)

		if accept != "" {
			r.Header.Set("Accept", accept)
		}

		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}

		res.Body.Close()
		return res
	}

	wait := func(path string) {
		t.Helper()

		eventually(t, path+" is known", func() bool { return get(path, "").StatusCode != 404 })
	}

	wait("/rpc/forge")

	for path, kept := range map[string][2]string{
		"/rpc/forge": {"X-Total-Count", "7"}, "/rpc/forge_failure": {"X-Powered-By", "tests"},
	} {
		res := get(path, "")
		for name, values := range res.Header {
			if strings.Contains(strings.Join(values, ","), "forged") {
				t.Errorf("%s: user code has set the header %s", path, name)
			}
		}

		if got := res.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: got X-Content-Type-Options %q, want nosniff", path, got)
		}
		if got := res.Header.Get(kept[0]); got != kept[1] {
			t.Errorf("%s: got %s %q, want %q", path, kept[0], got, kept[1])
		}
		if got := res.Header.Get("Content-Type"); got != "application/json; charset=utf-8" {
			t.Errorf("%s: got Content-Type %q", path, got)
		}
	}

	for path, accept := range map[string]string{"/rpc/page": "text/html", "/rpc/disguised": ""} {
		res := get(path, accept)
		if got := strings.Join(res.Header["Content-Security-Policy"], "; "); res.StatusCode != 200 ||
			got != "default-src 'none'; sandbox" {
			t.Errorf("%s: got status %d with Content-Security-Policy %q, want that of files", path, res.StatusCode, got)
		}
	}

	if got := get("/rpc/forge", "").Header.Get("Content-Security-Policy"); got != "" {
		t.Errorf("JSON has the Content-Security-Policy %q, want none", got)
	}
}
