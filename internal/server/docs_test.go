package server_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestDocsPage checks the policy of the API reference, and the encodings of its resources.
func TestDocsPage(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t)
	r := a.Get("/docs").Want(200)
	if got, want := r.Header.Get("Content-Type"), "text/html; charset=utf-8"; got != want {
		t.Errorf("got Content-Type %q, want %q", got, want)
	}

	page := string(r.Body)
	policy := r.Header.Get("Content-Security-Policy")
	inline := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(page, -1)
	if len(inline) != 1 {
		t.Fatalf("got %d inline scripts, want 1", len(inline))
	}

	sum := sha256.Sum256([]byte(inline[0][1]))
	for _, directive := range []string{
		"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'",
		"script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	} {
		if !strings.Contains(policy, directive) {
			t.Errorf("the policy %q lacks %q", policy, directive)
		}
	}

	for _, forbidden := range []string{`https?://`, `\sstyle=`, `\son[a-z]+=`} {
		if found := regexp.MustCompile(forbidden).FindString(page); found != "" {
			t.Errorf("the page contains %q", found)
		}
	}

	for _, path := range []string{"/docs/scalar.js", "/openapi.json", "/docs/api.json"} {
		plain := fetchAs(t, a.URL+path, "gzip;q=0")
		compressed := fetchAs(t, a.URL+path, "br, gzip")
		if len(compressed) > len(plain)/2 {
			t.Errorf("%s: got %d bytes compressed, %d bytes plain", path, len(compressed), len(plain))
		}

		unzip, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got, err := io.ReadAll(unzip); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: the compressed response differs from the plain one, %v", path, err)
		}
	}
}

// fetchAs returns the body of a response in one of the codings that the client accepts.
func fetchAs(t *testing.T, url, codings string) []byte {
	t.Helper()

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}

	req.Header.Set("Accept-Encoding", codings)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, res.StatusCode, err)
	}

	return body
}

// TestDocsInBrowser checks that Chromium shows every operation and guide without errors and without
// requests to other hosts.
func TestDocsInBrowser(t *testing.T) {
	t.Parallel()

	environment := []string{"SOCLE_URL=" + apitest.Empty(t).URL, "SOCLE_CHROMIUM=" + chromium(t)}
	runNode(t, clients, environment, "reference.mjs")
}
