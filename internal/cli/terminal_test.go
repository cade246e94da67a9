package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// dialogue is a command on a terminal.
type dialogue struct {
	*testing.T
	terminal *os.File
	seen     string
	done     chan error
}

// talk starts socle on a terminal of a width.
func talk(t *testing.T, a *apitest.API, columns uint16, args ...string) *dialogue {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "socle", args...)
	cmd.Env = append(os.Environ(), "TERM=xterm", "XDG_CONFIG_HOME="+t.TempDir(), "SOCLE_URL="+a.URL,
		"SOCLE_TOKEN="+a.Token, "SOCLE_PROJECT="+a.Project)

	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = terminal.Close() })

	d := &dialogue{T: t, terminal: terminal, done: make(chan error, 1)}
	go func() { d.done <- cmd.Wait() }()

	return d
}

// answer waits for a text and types an answer.
func (d *dialogue) answer(text, answer string) {
	d.Helper()

	buffer := make([]byte, 4096)
	for {
		if before, after, found := strings.Cut(d.seen, text); found {
			d.Log(before)
			d.seen = after

			break
		}

		_ = d.terminal.SetReadDeadline(time.Now().Add(time.Minute))

		n, err := d.terminal.Read(buffer)
		if err != nil {
			d.Fatalf("waiting for %q: got %q, %v", text, d.seen, err)
		}

		d.seen += strings.ReplaceAll(string(buffer[:n]), "\r", "")
	}

	if _, err := d.terminal.WriteString(answer); err != nil {
		d.Fatal(err)
	}
}

// end returns what else the command prints, and its exit status.
func (d *dialogue) end() (rest string, status int) {
	d.Helper()

	buffer := make([]byte, 4096)
	for {
		n, err := d.terminal.Read(buffer)
		d.seen += strings.ReplaceAll(string(buffer[:n]), "\r", "")
		if err != nil { // the terminal is closed with its last process
			break
		}
	}

	if err := <-d.done; err != nil {
		return d.seen, 1
	}

	return d.seen, 0
}

// TestConfirm: a destructive command asks on a terminal.
func TestConfirm(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.CreateTable("orders")

	d := talk(t, a, 80, "tables", "delete", "orders")
	d.answer("Delete a table: orders. Continue? [y/N] ", "\n")

	if rest, status := d.end(); status != 1 || !strings.Contains(rest, "canceled; nothing has changed") {
		t.Errorf("got %q, status %d, want a cancellation", rest, status)
	}

	a.Get("/tables/orders").Want(200)

	d = talk(t, a, 80, "tables", "delete", "orders")
	d.answer("[y/N] ", "y\n")

	if rest, status := d.end(); status != 0 {
		t.Errorf("got %q, status %d, want 0", rest, status)
	}

	a.Get("/tables/orders").Want(404)
}

// TestPasswordPrompt: a new password is typed twice and never shown.
func TestPasswordPrompt(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	for second, want := range map[string]int{"correct horse batterie": 1, "correct horse battery": 0} {
		d := talk(t, a, 80, "users", "create", "--username", "grace", "--email", "grace@example.com")
		d.answer("Password: ", "correct horse battery\n")
		d.answer("Password again: ", second+"\n")

		rest, status := d.end()
		if status != want || strings.Contains(rest, "horse") || strings.Contains(rest, "token") {
			t.Errorf("%s: got %q, status %d, want %d", second, rest, status, want)
		}
	}
}

// TestWidth: output fits the terminal, and nothing is cut off.
func TestWidth(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t).SignUp("administrator")
	for _, columns := range []uint16{60, 80, 160} {
		d := talk(t, a, columns, "settings", "list")

		out, status := d.end()
		if status != 0 || strings.Contains(out, "…") || !strings.Contains(out, "sign_up") {
			t.Errorf("%d columns: got %s, status %d", columns, out, status)
		}

		for line := range strings.Lines(out) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > int(columns) {
				t.Errorf("%d columns: got a line of %d: %s", columns, n, line)
			}
		}
	}
}

// TestShell types statements and commands.
func TestShell(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.CreateTable("orders")

	d := talk(t, a, 100, "sql")
	d.answer("(read-only)=> ", "select 1 as one,\n")
	d.answer("(read-only)-> ", "2 as two;\n")
	d.answer("  1    2", "")
	d.answer("(read-only)=> ", "select * form orders;\n")
	d.answer("LINE 1: select * form orders;\n                 ^\n", "")
	d.answer("(read-only)=> ", "\\readonly off\n")
	d.answer("=> ", "create table buyers (id int primary key);\n")
	d.answer("CREATE TABLE\n", "")
	d.answer("=> ", "\\dt\n")
	d.answer("buyers", "")
	d.answer("=> ", "\\d buyers\n")
	d.answer("buyers_pkey  CREATE UNIQUE INDEX", "")
	d.answer("=> ", "\\x\n")
	d.answer("=> ", "\\timing\n")
	d.answer("=> ", "select null as nothing;\n")
	d.answer("nothing  NULL\n", "")
	d.answer("Time: ", "")
	d.answer("=> ", "\\nothing\n")
	d.answer("there is no command \\nothing", "")
	d.answer("=> ", "\\q\n")

	if rest, status := d.end(); status != 0 {
		t.Errorf("got %q, status %d, want 0", rest, status)
	}
}
