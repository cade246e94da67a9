package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

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

	a := apitest.New(t)
	for _, script := range []string{"reading", "writing", "functions", "callers", "description", "admin"} {
		s := titlesProject{API: a.WithProject(a.CreateProject(script)), t: t}
		if _, err := s.Server.Projects().Open(uuid.MustParse(s.Project)).Owner().Exec(t.Context(),
			string(schema)); err != nil {
			t.Fatal(err)
		}

		environment := append(os.Environ(),
			"SOCLE_PROJECT="+s.URL+"/projects/"+s.Project,
			"SOCLE_PUBLISHABLE="+s.key("browser", "publishable"),
			"SOCLE_SECRET="+s.key("server", "secret"),
			"SOCLE_USER="+s.token(map[string]any{"role": "authenticated", "sub": "ann"}))

		t.Run(script, func(t *testing.T) {
			node := exec.CommandContext(t.Context(), "node", script+".mjs")
			node.Dir, node.Env = clients, environment
			if out, err := node.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestTypes checks that a program typed with a project's tables compiles exactly where it is
// correct.
func TestTypes(t *testing.T) {
	t.Parallel()

	schema, err := os.ReadFile(filepath.Join(clients, "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}

	a := apitest.New(t)
	if _, err := a.Server.Projects().Open(uuid.MustParse(a.Project)).Owner().Exec(t.Context(),
		string(schema)); err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	files := map[string]string{"types.ts": a.Get("/projects/" + a.Project + "/types").Want(200).Get("source").(string)}
	for _, name := range []string{"typed.ts", "tsconfig.json"} {
		text, err := os.ReadFile(filepath.Join(clients, name))
		if err != nil {
			t.Fatal(err)
		}

		files[name] = string(text)
	}

	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
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

	compile := exec.CommandContext(t.Context(), "node", "node_modules/typescript/bin/tsc", "--project", ".")
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Errorf("%v: make clients, if the compiler is missing\n%s", err, out)
	}
}
