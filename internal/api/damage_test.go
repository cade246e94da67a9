package api_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
)

// TestDownloadDamagedFile changes a byte of stored files, bypassing the server. No download of such
// a file completes.
func TestDownloadDamagedFile(t *testing.T) {
	t.Parallel()

	t.Run("folder", func(t *testing.T) {
		t.Parallel()

		a := apitest.Shared(t)
		downloadDamage(t, a, a.BlobDir())
	})

	t.Run("S3", func(t *testing.T) {
		t.Parallel()

		service := blobtest.New(t)
		downloadDamage(t, apitest.New(t, func(c *config.Config) { service.Configure(c) }),
			filepath.Join(service.Dir, "some/prefix/projects/*"))
	})
}

func downloadDamage(t *testing.T, a *apitest.API, folder string) {
	t.Helper()

	c := a.Create("/containers", `{"name": "reports"}`)
	path := func(name, content string) string {
		return "/containers/" + c + "/files/" + upload(a, c, name, content).Want(201).Get("uuid").(string) + "/download"
	}

	const last = "the last words"
	large := strings.Repeat("0123456789", 50_000) + last
	small, long := path("small", "hello"), path("long", large)
	flipBit(t, folder, 5)
	flipBit(t, folder, int64(len(large)))

	sound := path("sound", large)

	r := a.Get(small).Want(500).Code("internal")
	if r.Header.Get("ETag") != "" {
		t.Errorf("got ETag %s", r.Header.Get("ETag"))
	}

	get := func(path string, headers ...string) (int, string, error) {
		t.Helper()

		req, err := http.NewRequestWithContext(t.Context(), "GET", a.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}

		for _, h := range append(headers, "Authorization: Bearer "+a.Token, "X-Project: "+a.Project) {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}

		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()

		body, err := io.ReadAll(res.Body)
		return res.StatusCode, string(body), err
	}
	if status, body, err := get(long); err == nil || strings.Contains(body, last) {
		t.Errorf("a damaged file: got %d, %d bytes, %v", status, len(body), err)
	}

	if log := a.Log.String(); !strings.Contains(log, "does not match its checksum") ||
		strings.Count(log, strings.Split(long, "/")[4]) == 0 {
		t.Error("the file is not named in the log")
	}
	if status, body, err := get(long, "Range: bytes=-5"); status != 206 || body != "words" || err != nil {
		t.Errorf("a range: got %d %q, %v", status, body, err) // a range carries no checksum of the whole
	}
	if status, body, err := get(sound); status != 200 || body != large || err != nil {
		t.Errorf("an undamaged file: got %d, %d bytes, %v", status, len(body), err)
	}

	a.Get("/containers/" + c + "/files").Want(200)
}

// flipBit changes a bit of the stored blob with this size in bytes. folder is a pattern.
func flipBit(t *testing.T, folder string, size int64) {
	t.Helper()

	names, err := filepath.Glob(filepath.Join(folder, "files/*/*"))
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}

		if int64(len(content)) != size {
			continue
		}

		content[size/2] ^= 1
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}

		return
	}

	t.Fatalf("no blob of %d bytes in %v", size, names)
}
