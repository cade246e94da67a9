package server_test

import (
	"strings"
	"testing"
)

// TestCastsThatName checks that no cast in a request resolves OIDs to names of roles and relations,
// or reveals whether they exist.
func TestCastsThatName(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	conn := s.ConnectProject()
	if _, err := conn.Exec(t.Context(), `
		create table public.numbers (id int primary key, many oid[], text text, title int references public.titles);
		insert into public.titles (id) values (1);
		insert into public.numbers values (1, '{1,2}', 'nobody', 1);
		create function public.numbers_of() returns setof public.numbers language sql stable as 'select * from public.numbers';
		grant select on public.numbers, public.titles to service_role; grant execute on function public.numbers_of() to service_role; notify pgrst`); err != nil {
		t.Fatal(err)
	}

	secret := "apikey: " + s.secret
	eventually(t, "the table is known", func() bool {
		status, _ := s.rows(s.Project, "GET", "/numbers?select=id,titles(id)", "", secret)
		return status == 200
	})

	for _, typ := range []string{"regrole", "regclass", "regnamespace", "regproc", "regprocedure", "regoper",
		"regoperator", "regtype", "regconfig", "regdictionary", "regcollation", "REGROLE", " regrole ", "aclitem",
		"pg_class", "pg_type"} {
		for _, path := range []string{"/numbers?select=id::T", "/numbers?select=a:id::T", "/numbers?select=text::T",
			"/titles?select=id,numbers(id::T)", "/titles?select=id,...numbers(id::T)",
			"/numbers?select=many::_" + strings.TrimSpace(typ), "/rpc/numbers_of?select=id::T"} {
			path = strings.ReplaceAll(strings.ReplaceAll(path, "T", typ), " ", "%20")
			status, text := s.rows(s.Project, "GET", path, "", secret)
			if status != 403 || !strings.Contains(text, `"code":"42501"`) ||
				!strings.Contains(text, "permission denied for type") {
				t.Errorf("%s: got %d %s, want 403 for the type", path, status, text)
			}
		}

		if status, text := s.rows(s.Project, "POST", "/numbers?select=id::"+strings.ReplaceAll(typ, " ", "%20"),
			`{"id": 2}`, secret, "Prefer: return=representation"); status != 403 {
			t.Errorf("insert with %s: got %d %s, want 403", typ, status, text)
		}
	}

	s.want(200, `[{"id":"1"}]`, "GET", "/numbers?select=id::text", "", secret)
	s.want(200, `[{"id":1}]`, "GET", "/numbers?select=id::bigint", "", secret)
}
