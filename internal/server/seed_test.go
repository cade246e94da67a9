package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestSeed runs a small file with rows as one query, and a large one, with a COPY block, over
// PostgreSQL's protocol.
func TestSeed(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()

		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	up := func() (stdout, stderr string, status int) {
		return run(t, []string{"SOCLE_URL=" + a.URL, "SOCLE_TOKEN=" + a.Token, "SOCLE_PROJECT=" + a.Project,
			"HOME=" + dir}, "", "migrations", "up", "--seed", "--dir", dir)
	}

	write("20260101000000_books.sql", "create table books (id int primary key, title text);")
	write("seed.sql", "insert into books values (0, 'first') on conflict do nothing;")
	if out, failure, status := up(); status != 0 || !strings.Contains(out, "Ran ") {
		t.Fatalf("got %d\n%s%s", status, out, failure)
	}

	// A seed has as many statements as a migration, and its notes name its lines.
	write("seed.sql", "set session_replication_role = replica;\n"+
		strings.Repeat("insert into books values (0, 'first') on conflict do nothing;\n", 150))
	write("notes.sql", "no migration")
	out, failure, status := up()
	if want := "seed.sql:1: session_replication_role is left out"; status != 0 || !strings.Contains(failure, want) ||
		!strings.Contains(failure, "Skipped "+filepath.Join(dir, "notes.sql")) {
		t.Fatalf("got %d\n%s%s, want %s", status, out, failure, want)
	}

	write("20260102000000_owner.sql", "alter table books owner to postgres;\nalter table books owner to postgres;")
	if _, failure, _ := up(); !strings.Contains(failure,
		"owner.sql:1,2: owner postgres is left out: everything belongs to the project's owner") {
		t.Errorf("got no note of a migration:\n%s", failure)
	}

	var large strings.Builder
	large.WriteString("copy books (id, title) from stdin;\n")
	for i := range 20_000 {
		fmt.Fprintf(&large, "%d\ta title of a book with the number %d, and some more text about it\n", i+1, i)
	}
	large.WriteString("\\.\n")
	write("seed.sql", large.String()+"insert into nowhere values (1);")
	if out, failure, status := up(); status != 1 || !strings.Contains(failure, "nowhere") {
		t.Errorf("got %d\n%s%s", status, out, failure)
	}

	write("seed.sql", large.String()+"update books set title = 'last' where id = 20000;")
	if out, failure, status := up(); status != 0 {
		t.Fatalf("got %d\n%s%s", status, out, failure)
	}

	got := a.Post("/sql", `{"query": "select count(*)::text, max(title) filter (where id = 20000) from books"}`).
		Want(200).Get("results.0.rows")
	if want := "[[20001 last]]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
