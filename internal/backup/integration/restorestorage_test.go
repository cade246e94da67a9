package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
)

// TestRestoreFromFailingStorage restores and proves a backup while reads of the storage fail, at
// the start of a blob or in the middle. No error blames the backup.
func TestRestoreFromFailingStorage(t *testing.T) {
	t.Parallel()

	service := blobtest.New(t)
	a := apitest.New(t, func(c *config.Config) { service.ConfigureShortTimeout(c) })
	upload(t, a, a.Create("/containers", `{"name": "reports"}`), "a.txt", strings.Repeat("bytes of a file", 10000))
	id := makeBackup(t, a)

	proof := func() string {
		r := a.Get("/backups/" + id).Want(200)
		proven, _ := r.Metadata("provenAt").(string)
		why, _ := r.Metadata("proofError").(string)

		return proven + why
	}

	waitUntil(t, "the backup is proven", func() bool { return proof() != "" })
	proven := proof()

	const away = "the storage is unavailable"
	for name, after := range map[string]int{"at the beginning": 0, "in the middle": 70_000} {
		content := func(r *http.Request) bool {
			return r.Method == "GET" && strings.Contains(r.URL.Path, "/backups/content/")
		}
		service.TruncateResponses(after, content)

		service.OnRequest(func(w http.ResponseWriter, r *http.Request) bool {
			if !content(r) || r.Header.Get("Range") == "bytes=0-" {
				return false
			}

			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		})

		if reason := failRestore(t, a, id); reason != away {
			t.Errorf("%s: got error %q", name, reason)
		}
	}

	a.Exec(`delete from river.river_job where kind = 'prove'`)
	a.Exec(`update platform.backups set proven_at = proven_at - interval '2 days'`)
	before := proof()

	if err := a.Server.Services().Queue.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	waitUntil(t, "the proof is interrupted", func() bool {
		return strings.Contains(a.Log.String(), `"msg":"prove interrupted"`)
	})

	if got := proof(); got != before || before == proven {
		t.Errorf("got proof %q, want %q", got, before)
	}

	service.TruncateResponses(0, func(*http.Request) bool { return false })
	service.OnRequest(nil)
	a.Exec(`update river.river_job set state = 'available', scheduled_at = now() where kind = 'prove' and state = 'retryable'`)
	waitUntil(t, "the backup is proven again", func() bool { return proof() != before })

	if got := a.Get("/backups/" + id).Want(200).Metadata("proofError"); got != "" {
		t.Errorf("got proof %q", got)
	}

	restoreInPlace(t, a, id)
}
