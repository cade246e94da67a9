package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api"
	"github.com/socle-dev/socle/internal/api/apitest"
)

// clients is the folder of the client scripts and their schema.
const clients = "testdata/clients"

// TestClients checks that the client libraries of applications work unmodified. A script prints
// each failed step with its request and response.
func TestClients(t *testing.T) {
	t.Parallel()

	if _, err := os.Stat(filepath.Join(clients, "node_modules")); err != nil {
		t.Fatal("the client libraries are missing: make clients")
	}

	schema, err := os.ReadFile(filepath.Join(clients, "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}

	a := apitest.SharedUser(t)
	for _, script := range []string{"reading", "writing", "functions", "callers", "description", "admin"} {
		s := titlesProject{API: a.WithProject(a.CreateProject(script)), t: t}
		if _, err := s.Server.Projects().Open(uuid.MustParse(s.Project)).Owner().Exec(t.Context(),
			string(schema)); err != nil {
			t.Fatal(err)
		}

		environment := []string{
			"SOCLE_PROJECT=" + s.URL + "/projects/" + s.Project,
			"SOCLE_PUBLISHABLE=" + s.key("browser", "publishable"),
			"SOCLE_SECRET=" + s.key("server", "secret"),
			"SOCLE_USER=" + s.token(map[string]any{"role": "authenticated", "sub": "ann"}),
		}

		t.Run(script, func(t *testing.T) {
			runNode(t, clients, environment, script+".mjs")
		})
	}
}

// TestTypedClients checks that programs compile exactly where they are correct: one is typed with a
// project's tables, one, the README's requests, with the OpenAPI document. The requests also
// succeed.
func TestTypedClients(t *testing.T) {
	t.Parallel()

	schema, err := os.ReadFile(filepath.Join(clients, "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}

	a := apitest.Shared(t)
	if _, err := a.Server.Projects().Open(uuid.MustParse(a.Project)).Owner().Exec(t.Context(),
		string(schema)); err != nil {
		t.Fatal(err)
	}

	programs := typeScript(t, map[string][]byte{
		"types.ts":     []byte(a.Get("/projects/" + a.Project + "/types").Want(200).Get("source").(string)),
		"openapi.json": api.Document(),
	}, "typed.ts", "requests.ts", "tsconfig.json", "package.json")

	runNode(t, programs, nil, "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "--output", "openapi.ts")
	runNode(t, programs, nil, "node_modules/typescript/bin/tsc", "--project", ".", "--noEmit", "false")
	runNode(t, programs, []string{"SOCLE_URL=" + apitest.Empty(t).URL}, "requests.js")
}

// TestDocumentIsValid checks the OpenAPI document by the rules of a linter.
func TestDocumentIsValid(t *testing.T) {
	t.Parallel()

	document, err := filepath.Abs("../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}

	runNode(t, clients, []string{"SOCLE_DOCUMENT=" + document}, "lint.mjs")
}

// typeScript returns a folder with these files, copies of those named from the folder of the
// clients, and the libraries.
func typeScript(t *testing.T, files map[string][]byte, copied ...string) string {
	t.Helper()

	for _, name := range copied {
		text, err := os.ReadFile(filepath.Join(clients, name))
		if err != nil {
			t.Fatal(err)
		}

		files[name] = text
	}

	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	modules, err := filepath.Abs(filepath.Join(clients, "node_modules"))
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}

	return dir
}

// runNode runs a script, which prints each failed step.
func runNode(t *testing.T, dir string, environment []string, args ...string) {
	t.Helper()

	node := exec.CommandContext(t.Context(), "node", args...)
	node.Dir, node.Env = dir, append(os.Environ(), environment...)

	if out, err := node.CombinedOutput(); err != nil {
		t.Fatalf("node %s: %v: make clients, if a library is missing\n%s", args[0], err, out)
	}
}
