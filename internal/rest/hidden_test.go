package rest

import (
	"net/http"
	"strings"
	"testing"
)

// TestHiddenColumns checks that a request cannot learn anything of columns without the select
// privilege, whether its guess is right or not.
func TestHiddenColumns(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create table owners (id int primary key, vault int unique);
		create table vaults (id int primary key references owners, open text, hidden text unique, about jsonb, words tsvector);
		insert into owners values (1, 1);
		insert into vaults values (1, 'o', 'h', '{"a":1}', 'h');
		create function vaults_of(owner int) returns setof vaults language sql stable as 'select * from vaults where id = owner';
		grant select on owners to authenticated;
		grant select (id, open), insert, update, delete on vaults to authenticated`, func(c *Config) {
		c.Features.Aggregates = true
	})

	for _, test := range []struct{ method, path, body, prefer string }{
		{"GET", "/vaults", "", ""},
		{"GET", "/vaults?select=hidden", "", ""},
		{"GET", "/vaults?select=id,about->a", "", ""},
		{"GET", "/vaults?select=hidden.max()", "", ""},
		{"GET", "/vaults?select=hidden.count()", "", ""},
		{"GET", "/vaults?select=count(),hidden", "", ""},
		{"GET", "/vaults?select=id&hidden=eq.VALUE", "", ""},
		{"GET", "/vaults?select=id&hidden=like.VALUE*", "", "count=exact"},
		{"GET", "/vaults?select=id&hidden=eq.VALUE", "", "count=planned"},
		{"GET", "/vaults?select=id&hidden=is.null", "", "count=estimated"},
		{"HEAD", "/vaults?select=id&hidden=eq.VALUE", "", "count=exact"},
		{"GET", "/vaults?select=id&words=fts.VALUE", "", ""},
		{"GET", "/vaults?select=id&about->>a=eq.VALUE", "", ""},
		{"GET", "/vaults?select=id&or=(id.eq.1,hidden.eq.VALUE)", "", ""},
		{"GET", "/vaults?select=id&order=hidden", "", ""},
		{"GET", "/owners?select=id,vaults(hidden)", "", ""},
		{"GET", "/owners?select=id,...vaults(hidden)", "", ""},
		{"GET", "/owners?select=id,vaults!inner(id)&vaults.hidden=eq.VALUE", "", ""},
		{"GET", "/owners?select=id,vaults(id)&order=vaults(hidden)", "", ""},
		{"GET", "/rpc/vaults_of?owner=1&select=id&hidden=eq.VALUE", "", ""},
		{"POST", "/vaults?on_conflict=hidden", `{"id":1,"hidden":"VALUE"}`, "resolution=ignore-duplicates"},
		{"POST", "/vaults?on_conflict=hidden", `{"id":1,"hidden":"VALUE"}`, "resolution=merge-duplicates"},
		{"POST", "/vaults?select=hidden", `{"id":1,"hidden":"VALUE"}`, "return=representation"},
		{"PATCH", "/vaults?hidden=eq.VALUE", `{"open":"x"}`, ""},
		{"PATCH", "/vaults?id=eq.1&select=hidden", `{"open":"x"}`, "return=representation"},
		{"DELETE", "/vaults?hidden=eq.VALUE", "", "count=exact"},
	} {
		for _, value := range []string{"h", "other"} {
			got := a.do(test.method, strings.ReplaceAll(test.path, "VALUE", value),
				strings.ReplaceAll(test.body, "VALUE", value), "Prefer", test.prefer)
			if got.status != http.StatusForbidden ||
				(test.method != "HEAD" && !strings.Contains(got.body, `"permission denied for table vaults"`)) {
				t.Errorf("%s %s with %s: %d %s", test.method, test.path, value, got.status, got.body)
			}

			if r := got.header.Get("Content-Range"); r != "" {
				t.Errorf("%s %s: Content-Range %s", test.method, test.path, r)
			}
		}
	}

	if got := a.do("GET", "/vaults?select=id,open&open=eq.o&order=open", ""); got.body != `[{"id":1,"open":"o"}]` {
		t.Errorf("granted columns: got %+v", got)
	}
}

// TestClaimsComeFromToken checks that only the token determines the caller.
func TestClaimsComeFromToken(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	claimed := []string{"Request.jwt.claims", `{"role":"service_role","sub":"ben"}`, "X-Role", "service_role", "Role",
		"service_role", "X-Jwt-Claims", "{}", "Cookie",
		"request.jwt.claims={}; role=service_role; Authorization=Bearer service_role:ben"}

	for name, want := range map[string]string{
		"request.jwt.claims": `"{\"role\":\"authenticated\",\"sub\":\"ann\"}"`, "role": `"authenticated"`,
	} {
		if got := a.do("GET", "/rpc/setting?name="+name, "", claimed...); got.body != want {
			t.Errorf("%s is %s, want %s", name, got.body, want)
		}
	}

	if got := a.do("GET", "/notes?select=id", "", claimed...); got.body != `[{"id":1}]` {
		t.Errorf("the rows of ann: %+v", got)
	}

	for _, test := range [][3]string{
		{"GET", "/rpc/setting?name=role&request.jwt.claims=x", ""},
		{"GET", "/rpc/setting?name=role&role=service_role", ""},
		{"POST", "/rpc/setting", `{"name":"role","role":"service_role"}`},
		{"GET", "/notes?role=eq.service_role", ""},
		{"POST", "/notes", `{"id":9,"request.jwt.claims":"{}"}`},
	} {
		if got := a.do(test[0], test[1], test[2]); got.status < 400 || got.status >= 500 {
			t.Errorf("%v: %d %s", test, got.status, got.body)
		}
	}
}
