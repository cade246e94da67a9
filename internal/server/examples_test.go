package server_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestExampleInBrowser sets the example application up by its README and uses it in Chromium.
func TestExampleInBrowser(t *testing.T) {
	t.Parallel()

	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}

	const example = "../../examples/notes"
	app := t.TempDir()
	if err := os.CopyFS(app, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}

	modules, err := filepath.Abs(clients + "/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, app+"/node_modules"); err != nil {
		t.Fatal(err)
	}

	text, err := os.ReadFile(example + "/README.md")
	if err != nil {
		t.Fatal(err)
	}

	a := apitest.Shared(t)
	script := scriptOf(examplesOf(t, string(text))) + "\ncd $CLIENTS && node notes.mjs\n"

	bash := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	bash.Dir = app
	bash.Env = []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(),
		"SOCLE_URL=" + a.URL, "SOCLE_TOKEN=" + a.Token, "SOCLE_CHROMIUM=" + chromium(t),
		"EXAMPLE=" + app, "CLIENTS=" + filepath.Dir(modules), "SOCLE_SCREENSHOTS=" + os.Getenv("SOCLE_SCREENSHOTS")}

	var problems bytes.Buffer
	bash.Stderr = &problems
	if out, err := bash.Output(); err != nil {
		t.Errorf("%v\n%s%s", err, out, &problems)
	}
}
