package server_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

// pushed is a repository that is pushed to a project.
type pushed struct {
	t        *testing.T
	dir      string
	settings []string
}

func newPushed(t *testing.T, a *apitest.API) *pushed {
	t.Helper()

	p := &pushed{t, filepath.Join(t.TempDir(), "Bücher & Co", "supabase"), []string{
		"SOCLE_URL=" + a.URL, "SOCLE_TOKEN=" + a.Token, "SOCLE_PROJECT=" + a.Project, "XDG_CONFIG_HOME=" + t.TempDir(),
	}}
	for name, text := range map[string]string{
		"config.toml": "project_id = \"books\"\r\n[auth]\r\nsite_url = \"https://books.example.com\"\r\n[api]\r\nmax_rows = 77\r\n" +
			"[storage.buckets.covers]\r\npublic = true\r\n",
		"migrations/20260101000000_books.sql": "create table books (\r\n\tid int primary key,\r\n\ttitle text\r\n);\r\n" +
			"create function shelf() returns text language sql as $$\r\n\tselect 'a\r\nb'\r\n$$;\r\n",
		"migrations/20260102000000_noch ein Bücher-Regal.sql": "insert into books values (1, 'Emma');\n",
		"seed.sql": "insert into books values (2, 'Ulysses');\r\n",
	} {
		p.write(name, text)
	}

	return p
}

func (p *pushed) write(name, text string) {
	p.t.Helper()

	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// command returns the push. It runs from a folder inside the repository.
func (p *pushed) command(out *bytes.Buffer, args ...string) *exec.Cmd {
	p.t.Helper()

	cmd := command(p.t, p.settings, append([]string{"push", "--yes", "--open-tables"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(p.dir, "migrations"), out, out

	return cmd
}

// push pushes, and returns the output. want is a part of it, fails whether the push does.
func (p *pushed) push(fails bool, want string, args ...string) {
	p.t.Helper()

	var out bytes.Buffer
	cmd := p.command(&out, args...)
	if err := cmd.Run(); (err != nil) != fails || !strings.Contains(out.String(), want) {
		p.t.Fatalf("push: %v\n%s\nwant %q in it, failure %v", err, out.String(), want, fails)
	}
}

// TestPush pushes a repository with the line ends of Windows and with names of any form, again, and
// after changes.
func TestPush(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	p := newPushed(t, a)
	p.push(false, "create  bucket covers", "--types", "database.ts")
	project := "/projects/" + a.Project
	a.Get(project+"/auth-settings").Want(200).Content("siteUrl", "https://books.example.com")
	a.Get(project+"/rest-settings").Want(200).Content("maxRows", 77)
	types, err := os.ReadFile(filepath.Join(p.dir, "migrations", "database.ts"))
	if err != nil || !bytes.Contains(types, []byte("title: string | null")) {
		t.Errorf("types: %v\n%s", err, types)
	}

	p.push(false, "Nothing to do")

	text, err := os.ReadFile(filepath.Join(p.dir, "migrations/20260101000000_books.sql"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("migrations/20260101000000_books.sql", strings.ReplaceAll(string(text), "\r\n", "\n"))
	p.push(false, "Nothing to do")

	p.write("migrations/20260101000000_books.sql", string(text)+"create table other (id int);\n")
	p.push(true, "20260101000000_books.sql")
	p.write("migrations/20260101000000_books.sql", string(text))

	p.write("migrations/20260103000000_half.sql", "create table half (id int);\n\ncreate table broken (id wrong);\n")
	p.push(true, "20260103000000_half.sql:3")
	a.Get("/tables/half").Want(404)
}

// TestInterruptedPush kills a push in a migration, and pushes from two folders of log-ins at once.
func TestInterruptedPush(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	p := newPushed(t, a)
	conn := a.ConnectProject()
	pgtest.Exec(t, conn, `select pg_advisory_lock(31)`)
	waits := func() bool {
		return pgtest.Value[bool](t, conn,
			`select exists (select from pg_locks where locktype = 'advisory' and objid = 31 and not granted
				and database = (select oid from pg_database where datname = current_database()))`)
	}

	p.write("migrations/20260103000000_wait.sql", "insert into books values (3, 'Dune'); select pg_advisory_xact_lock(31);")
	var out bytes.Buffer
	killed := p.command(&out)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, "the push waits", waits)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := killed.Wait(); err == nil {
		t.Errorf("the killed push has ended well:\n%s", out.String())
	}

	pgtest.Eventually(t, "the statement of the killed push has ended", func() bool { return !waits() })
	var outs [2]bytes.Buffer
	var both [2]*exec.Cmd
	for i := range both {
		both[i] = p.command(&outs[i])
		both[i].Env = append(both[i].Env, "XDG_CONFIG_HOME="+t.TempDir())
		if err := both[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Eventually(t, "a push waits", waits)
	pgtest.Exec(t, conn, `select pg_advisory_unlock(31)`)
	for i := range both {
		if err := both[i].Wait(); err != nil {
			t.Errorf("push %d: %v\n%s", i, err, outs[i].String())
		}
	}

	p.push(false, "Nothing to do")
	if got := pgtest.Value[string](t, conn, `select string_agg(title, ', ' order by id) from books`); got != "Emma, Ulysses, Dune" {
		t.Errorf("got the rows %q of interrupted and simultaneous pushes, want each once", got)
	}
}
