package api_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestRunSQLAs checks that SQL as a caller of the application has the caller's role and claims, and
// no more rights than these.
func TestRunSQLAs(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	users := "/projects/" + a.Project + "/end-users"
	ada := a.Create(users, `{"email": "ada@example.com", "password": "correct horse battery"}`)
	a.Create(users, `{"email": "bob@example.com", "password": "correct horse battery"}`)
	a.Post("/sql", sqlBody(`
		create table notes (id int primary key, owner uuid, text text);
		alter table notes enable row level security;
		grant select, insert on notes to authenticated;
		create policy own on notes to authenticated using (owner = auth.uid()) with check (owner = auth.uid());
		insert into notes values (1, '`+ada+`', 'Ada''s'), (2, gen_random_uuid(), 'another''s')`, writing)).Want(200)

	for _, as := range []string{"user:" + ada, "user:Ada@example.com"} {
		a.Post("/sql", sqlBody("select text from notes; select current_user::text, auth.uid()::text, auth.email()", `"as": "`+as+`"`)).
			Want(200).Content("results.0.rows", []any{[]any{"Ada's"}}).
			Content("results.1.rows", []any{[]any{"authenticated", ada, "ada@example.com"}})
	}

	a.Post("/sql", sqlBody("select * from notes", `"as": "user:bob@example.com"`)).Want(200).
		Content("results.0.rows", []any{}).Content("results.0.columns.2.type", "text")
	a.Post("/sql", sqlBody("select auth.uid()", `"as": "authenticated"`)).Want(200).
		Content("results.0.rows.0.0", nil)
	refused := func(r *apitest.Reply) {
		t.Helper()
		if state := r.Want(422).Code("sql_error").Metadata("postgres.sqlstate"); state != "42501" {
			t.Errorf("got SQLSTATE %v, want 42501", state)
		}
	}
	refused(a.Post("/sql", sqlBody("select * from notes", `"as": "anon"`)))

	// Writes are rolled back unless allowed, and policies check them.
	const insert = "insert into notes select 3, auth.uid(), 'new'"
	a.Post("/sql", sqlBody(insert, `"as": "user:`+ada+`"`)).Want(422).Code("read_only")
	refused(a.Post("/sql", sqlBody("insert into notes values (4, gen_random_uuid(), 'forged')", writing, `"as": "user:`+ada+`"`)))
	a.Post("/sql", sqlBody(insert, writing, `"as": "user:ada@example.com"`)).Want(200)
	a.Get("/projects/"+a.Project+"/audit?action=runSQL").Want(200).Content("0.as", "user:"+ada)
	if got := query[int](t, a, "select count(*) from public.notes"); got != 3 {
		t.Errorf("got %d rows, want 3", got)
	}
}

// TestRunSQLAsIsConfined checks that SQL as a caller takes no other role, and that the platform
// does nothing for it that only the owner may ask for.
func TestRunSQLAsIsConfined(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/sql", sqlBody("create table secrets (id int); insert into secrets values (1)", writing)).Want(200)

	for _, escape := range []string{"reset role; select * from secrets", "set role none; select * from secrets",
		"set role service_role", "set session authorization postgres", "create extension postgis",
		"drop extension pgcrypto", "create table mine (id int)", "select * from socle.queries"} {
		a.Post("/sql", sqlBody(escape, writing, `"as": "authenticated"`)).Want(422).Field("query")
	}

	a.Post("/sql", sqlBody("select 1", `"as": "user:nobody@example.com"`)).Want(422).Field("as").
		Code("unknown_end_user")
	for _, malformed := range []string{"", "service_role", "owner", "user:"} {
		a.Post("/sql", sqlBody("select 1", `"as": "`+malformed+`"`)).Want(422).Field("as")
	}

	// A user with a role of the project's own.
	editor := a.Create("/projects/"+a.Project+"/end-users", `{"email": "editor@example.com", "password": "correct horse battery"}`)
	a.Post("/sql", sqlBody("update auth.users set role = 'editor' where id = '"+editor+"'", writing)).Want(200)
	a.Post("/sql", sqlBody("select 1", `"as": "user:`+editor+`"`)).Want(422).Field("as").Code("not_allowed")

	setDatabaseQuota(t, a.Administrator(), a, true)
	a.Post("/sql", sqlBody("select 1", writing, `"as": "anon"`)).Want(413).Code("quota_exceeded")
	a.Post("/sql", sqlBody("select 1", `"as": "anon"`)).Want(200)
}
