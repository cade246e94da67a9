package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestDocsPage checks that the API reference works under its own policy and without other hosts.
func TestDocsPage(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t)
	r := a.Get("/docs").Want(200)
	if got, want := r.Header.Get("Content-Type"), "text/html; charset=utf-8"; got != want {
		t.Errorf("got Content-Type %q, want %q", got, want)
	}

	page := string(r.Body)
	policy := r.Header.Get("Content-Security-Policy")
	for _, directive := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, directive) {
			t.Errorf("the policy %q lacks %q", policy, directive)
		}
	}

	for _, tag := range []string{"script", "style"} {
		elements := regexp.MustCompile(`(?s)<`+tag+`[^>]*>(.*?)</`+tag+`>`).FindAllStringSubmatch(page, -1)
		if len(elements) != 1 {
			t.Fatalf("got %d elements %s, want 1", len(elements), tag)
		}

		sum := sha256.Sum256([]byte(elements[0][1]))
		if want := tag + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'"; !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}

	// no markup that the policy would block: other hosts, inline styles and handlers, text
	// evaluated as code
	for _, forbidden := range []string{`//[a-z]`, `\sstyle=`, `\son[a-z]+=`, `innerHTML`, `@import`} {
		if found := regexp.MustCompile(forbidden).FindString(withoutComments(page)); found != "" {
			t.Errorf("the page contains %q", found)
		}
	}
}

func withoutComments(page string) string {
	return regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAllString(page, "")
}

// TestDocsInBrowser checks that Chromium shows every operation without errors and without requests
// to other hosts.
func TestDocsInBrowser(t *testing.T) {
	t.Parallel()

	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: make chromium", err)
	}

	node := exec.CommandContext(t.Context(), "node", "reference.mjs")
	node.Dir = clients
	node.Env = append(os.Environ(), "SOCLE_URL="+apitest.Empty(t).URL, "SOCLE_CHROMIUM="+chromium)

	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
