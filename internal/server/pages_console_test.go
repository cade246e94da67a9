package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestConsoleInBrowser works in the console as a person does, from the first sign-up on, and opens
// every screen.
func TestConsoleInBrowser(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t)
	input, err := json.Marshal(map[string]string{"server": a.URL, "setupToken": a.Server.SetupToken})
	if err != nil {
		t.Fatal(err)
	}

	runConsole(t, "console.mjs", input)
}

// TestConsoleRoles opens every screen as a viewer, a developer and an admin: none asks for what the
// role does not allow.
func TestConsoleRoles(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	a.Post("/sql", `{"query": "create table public.books (id int primary key, title text)", "read_only": false}`).Want(200)

	members := map[string]string{}
	for name, role := range map[string]int{"viewer": 5, "developer": 4, "admin": 3} {
		members[name] = a.Member(role).Email
	}

	input, err := json.Marshal(map[string]any{"server": a.URL, "project": a.Project, "organization": a.Organization,
		"members": members, "password": apitest.Password})
	if err != nil {
		t.Fatal(err)
	}

	runConsole(t, "consoleroles.mjs", input)
}

// TestConsoleExtremes opens screens with data at their limits: columns, names, numbers, a heavy
// cell, many tables and users, and a paused project.
func TestConsoleExtremes(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	input, err := json.Marshal(map[string]string{"server": a.URL, "project": a.Project, "token": a.Token,
		"email": a.Email, "password": apitest.Password})
	if err != nil {
		t.Fatal(err)
	}

	runConsole(t, "consoleextremes.mjs", input)
}

// runConsole runs a script of the clients, which reads the input's line.
func runConsole(t *testing.T, script string, input []byte) {
	t.Helper()

	node := exec.CommandContext(t.Context(), "node", script)
	node.Dir = clients
	node.Env = append(os.Environ(), "SOCLE_CHROMIUM="+chromium(t))
	node.Stdin = strings.NewReader(string(input) + "\n")

	if output, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
