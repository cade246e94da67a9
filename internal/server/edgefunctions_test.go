package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestEdgeFunctionsByClient has supabase-js, a driver of PostgreSQL and a page of another origin
// use edge functions.
func TestEdgeFunctionsByClient(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	s.run(`create table books (title text); insert into books values ('Emma'), ('Utopia')`)
	for _, name := range []string{"echo", "slow", "database"} {
		body, err := json.Marshal(map[string]any{"code": bundle(t, filepath.Join("edge", name+".js")),
			"verify_jwt": name != "slow"})
		if err != nil {
			t.Fatal(err)
		}

		s.Put("/projects/"+s.Project+"/edge-functions/"+name, string(body)).Want(200)
	}

	runNode(t, clients, []string{
		"SOCLE_PROJECT=" + s.URL + "/projects/" + s.Project, "SOCLE_CHROMIUM=" + chromium(t),
		"SOCLE_PUBLISHABLE=" + s.publishable, "SOCLE_SECRET=" + s.secret,
	}, "--experimental-websocket", "edge.mjs")
}

// bundle returns a module of the clients' folder with everything that it imports.
func bundle(t *testing.T, module string) string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), filepath.Join("node_modules", ".bin", "esbuild"), module, "--bundle",
		"--platform=node", "--format=esm", "--external:pg-native", "--log-level=error",
		`--banner:js=import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`)
	cmd.Dir, cmd.Stderr = clients, os.Stderr

	code, err := cmd.Output()
	if err != nil {
		t.Fatalf("bundle %s: %v: make clients, if a library is missing", module, err)
	}

	return string(code)
}
