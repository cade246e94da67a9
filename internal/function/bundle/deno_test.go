package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/function/runtime"
)

// TestInstall refuses archives of others, from a file and from a registry.
func TestInstall(t *testing.T) {
	t.Parallel()

	archive := pack(t, "package/"+runtime.ProgramName(), "program")
	file := filepath.Join(t.TempDir(), "deno.tgz")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		t.Fatal(err)
	}

	asked := make(chan string, 1)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		_, _ = w.Write(archive)
	}))
	defer host.Close()

	folder := t.TempDir()
	for _, from := range []string{file, host.URL} {
		_, _, err := Install(t.Context(), folder, from)
		if err == nil || !strings.Contains(err.Error(), "the archive is not") {
			t.Errorf("%s: got %v", from, err)
		}
	}

	release, ok := runtime.CurrentRelease()
	if !ok {
		t.Fatal("there is no release for this system")
	}
	if path := <-asked; !strings.HasPrefix(path, "/"+release.Package+"/-/") ||
		!strings.HasSuffix(path, "-"+release.Version+".tgz") {
		t.Errorf("the registry was asked for %s", path)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// TestFetchAndUnpack installs an archive with the sum of its release.
func TestFetchAndUnpack(t *testing.T) {
	t.Parallel()

	content := pack(t, "package/"+runtime.ProgramName(), "program")
	file := filepath.Join(t.TempDir(), "deno.tgz")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(content)
	release := runtime.Release{Package: "@deno/x", Version: "1",
		Sum: "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}

	archive, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()

	program := filepath.Join(t.TempDir(), runtime.ProgramName())
	if err := errors.Join(fetch(t.Context(), archive, release, file), unpack(archive, program)); err != nil {
		t.Fatal(err)
	}

	text, err := os.ReadFile(program)
	info, statErr := os.Stat(program)
	if err := errors.Join(err, statErr); err != nil || string(text) != "program" || info.Mode().Perm() != 0o755 {
		t.Errorf("got %q, %v, %v", text, info.Mode(), err)
	}

	if err := unpack(bytes.NewReader(pack(t, "package/../../x", "y")), program); err == nil {
		t.Error("an archive without the program was unpacked")
	}
}

// pack returns an archive with a file.
func pack(t *testing.T, name, text string) []byte {
	t.Helper()

	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o755, Typeflag: tar.TypeReg})
	_, writeErr := w.Write([]byte(text))
	if err := errors.Join(err, writeErr, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}

	return b.Bytes()
}

// TestEnviron: Deno gets no secrets of the developer.
func TestEnviron(t *testing.T) {
	t.Parallel()

	got := strings.Join(Environ([]string{"PATH=/bin", "AWS_SECRET_ACCESS_KEY=x", "https_proxy=p",
		"NODE_EXTRA_CA_CERTS=c", "DENO_DIR=d",
		"SOCLE_TOKEN=t", "NPM_TOKEN=t", "DENO_AUTH_TOKENS=t@h", "NPM_CONFIG_REGISTRY=r", "HOMELESS=1", "XPATH=1"}), " ")
	if want := "PATH=/bin https_proxy=p NODE_EXTRA_CA_CERTS=c DENO_DIR=d NPM_CONFIG_REGISTRY=r NO_COLOR=1 " +
		"DENO_NO_UPDATE_CHECK=1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
