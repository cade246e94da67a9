package statement

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/sqllex"
)

// TestHint checks the reasons that PostgreSQL's errors get, and that others stay as they are.
func TestHint(t *testing.T) {
	t.Parallel()

	const table, schema, function = "permission denied for table ", "permission denied for schema ",
		"permission denied for function "
	for _, test := range []struct {
		code, message, text, internal string
		want                          string // in the hint; "" for none
	}{
		{"42501", table + "passwords", `select * from auth.passwords`, "", "auth.passwords belongs"},
		{"42501", table + "sessions", `delete from "auth" . "sessions"`, "", "auth.sessions belongs"},
		{"42501", table + "sessions", `select f()`, "select * from AUTH.Sessions", "auth.sessions belongs"},
		{"42501", table + "sessions", `select * from public.sessions`, "", ""},
		{"42501", table + "sessions", `select * from my_auth.sessions, auth.sessions_2`, "", ""},
		{"42501", schema + "socle", `select * from socle.audit`, "", "The schema socle belongs"},
		{"42501", schema + "private", `select * from private.t`, "", ""},
		{"42501", function + "store_password", `select auth.store_password('')`, "", "auth.store_password belongs"},
		{"42501", table + "files", `select * from storage.files`, "", "storage.files belongs"},
		{"42501", "permission denied to create role", `create role auth.files`, "", ""},
		{"42P01", table + "sessions", `select * from auth.sessions`, "", ""},
		{"23514", "x", `insert into storage.objects values (1)`, "", "Storage API"},
		{"23514", "x", `insert into public.objects values (1)`, "", ""},
	} {
		e := &pgconn.PgError{Code: test.code, Message: test.message, InternalQuery: test.internal}
		got := hint(e, sqllex.Statement{Text: test.text})
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s, %s: got the hint %q, want %q", test.message, test.text, got, test.want)
		}

		e.Hint = "PostgreSQL's"
		if got := hint(e, sqllex.Statement{Text: test.text}); got != e.Hint {
			t.Errorf("%s: got the hint %q, want PostgreSQL's", test.text, got)
		}
	}
}
