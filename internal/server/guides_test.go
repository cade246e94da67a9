package server_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

const guides = "../../docs/guides/"

// TestGuides runs the commands of the guides, each in a project of its own, and compares the
// output.
func TestGuides(t *testing.T) {
	t.Parallel()

	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}

	a := apitest.SharedUser(t)
	for _, name := range []string{
		"back-up-and-restore.md", "protect-a-table.md", "end-users.md", "files.md", "from-supabase.md", "nextjs.md",
		"s3.md", "realtime.md", "schedules.md", "queues.md", "transactions.md", "webhooks.md", "functions.md",
	} {
		text, err := os.ReadFile(guides + name)
		if err != nil {
			t.Fatal(err)
		}

		project := a.CreateProject(name)
		dir := typeScript(t, map[string][]byte{}) // an empty folder with the client libraries
		examples := examplesOf(t, string(text))

		// A reader's project may have backups already.
		script := "socle backups create --wait > /dev/null\n" + scriptOf(examples)
		bash := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		bash.Dir = dir
		bash.Env = []string{"PATH=" + filepath.Dir(path) + ":" + os.Getenv("PATH"), "HOME=" + dir,
			"SOCLE_DENO_BIN=" + os.Getenv("SOCLE_DENO_BIN"),
			"DENO_DIR=" + filepath.Join(os.Getenv("SOCLE_DENO_BIN"), "cache"),
			"SOCLE_URL=" + a.URL, "SOCLE_TOKEN=" + a.Token, "SOCLE_PROJECT=" + project,
			"NODE_OPTIONS=--experimental-websocket"} // which supabase-js needs, and Node.js 20 has no other

		var errors bytes.Buffer
		bash.Stderr = &errors
		out, err := bash.Output()
		if err != nil {
			t.Fatalf("%s: bash: %v\n%s%s", name, err, out, errors.String())
		}

		compareExamples(t, name, examples, string(out))
	}
}

var envBlock = regexp.MustCompile("(?ms)^ *```env\n(.*?)^ *```$")

// TestGuideSettings loads the settings that the guides show.
func TestGuideSettings(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile(guides + "deploy.md")
	if err != nil {
		t.Fatal(err)
	}

	blocks := envBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("found %d blocks of settings, want 2", len(blocks))
	}

	for _, block := range blocks {
		if _, err := config.Load(strings.Fields(block[1]), nil); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
	}
}
