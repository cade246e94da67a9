package server_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/socle-dev/socle/internal/pgtest"
)

// writeRepository writes files below a folder.
func writeRepository(t *testing.T, root string, files map[string]string) {
	t.Helper()

	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// variable returns a variable that socle dev has printed.
func variable(name string, log *output) string {
	for line := range strings.Lines(log.String()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}

	return ""
}

var deployedLine = regexp.MustCompile(`Deployed hello: (\S+)`)

// TestDevFunctions: socle dev deploys the edge functions of a repository, and again what changes. A
// hook calls one by its address on the developer's machine.
func TestDevFunctions(t *testing.T) {
	t.Parallel()

	root := t.TempDir()
	writeRepository(t, root, map[string]string{
		"supabase/config.toml": "project_id = \"dev\"\n[functions.hello]\nverify_jwt = false\n" +
			"[auth.hook.before_user_created]\nenabled = true\nuri = \"http://127.0.0.1:54321/functions/v1/refuse\"\n",
		"supabase/functions/hello/index.ts":        `Deno.serve(() => new Response("one"));`,
		"supabase/functions/refuse/index.ts":       `Deno.serve(() => Response.json({ error: { http_code: 418, message: "closed" } }));`,
		"supabase/functions/_shared/text.ts":       "export const text = 'shared';\n",
		"supabase/migrations/20260101000000_a.sql": "create table notes (id int);\n",
	})

	p := launchWith(t, filepath.Join(t.TempDir(), "data"), func(cmd *exec.Cmd) {
		cmd.Args = []string{cmd.Args[0], "dev", "--addr", "127.0.0.1:0"}
		cmd.Dir = root
		deno := os.Getenv("SOCLE_DENO_BIN")
		cmd.Env = append(cmd.Env, "SOCLE_DENO_BIN="+deno, "DENO_DIR="+filepath.Join(deno, "cache"), "HOME="+t.TempDir())
	})
	p.dir = filepath.Join(root, ".socle", "data")
	p.ready()

	address := deployedLine.FindStringSubmatch(p.log.String())
	if address == nil {
		t.Fatalf("no function was deployed:\n%s", p.log)
	}
	answer := func() string {
		res, err := http.Get(address[1])
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()

		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := answer(); got != "one" {
		t.Errorf("got %q", got)
	}

	writeRepository(t, root, map[string]string{"supabase/functions/hello/index.ts": `import { text } from "../_shared/text.ts";
		Deno.serve(() => new Response(text));`})
	pgtest.Eventually(t, "the function has changed", func() bool { return answer() == "shared" })

	project, key := variable("SUPABASE_URL", p.log), variable("SUPABASE_PUBLISHABLE_KEY", p.log)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, project+"/auth/v1/signup",
		strings.NewReader(`{"email": "ada@example.com", "password": "correct horse 1"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Apikey": {key}, "Content-Type": {"application/json"}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusTeapot {
		t.Errorf("sign-up: got the status %d, want that of the hook", res.StatusCode)
	}

	p.signal(syscall.SIGINT)
	if status := p.wait(); status != 0 {
		t.Errorf("ended with %d", status)
	}
}
