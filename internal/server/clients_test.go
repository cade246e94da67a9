package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"socle/internal/api/apitest"
)

// clients is the folder of the scripts that drive client libraries, and of the schema that they ask for.
const clients = "testdata/clients"

// TestClients: the libraries that applications use work unchanged. A script prints every step that fails, with
// the request and its answer.
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
	for _, script := range []string{"reading", "writing", "functions", "callers", "description"} {
		s := shop{API: a.In(a.CreateProject(script)), t: t}
		if _, err := s.Server.Projects().Open(uuid.MustParse(s.Project)).Owner().Exec(t.Context(), string(schema)); err != nil {
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
