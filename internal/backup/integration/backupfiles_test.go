package integration_test

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/object"
)

// TestDeleteWhileBackedUp deletes a container while the bytes of its files are copied. The backup
// has them, and they are removed afterwards.
func TestDeleteWhileBackedUp(t *testing.T) {
	t.Parallel()

	service := blobtest.New(t)
	a := apitest.New(t, func(c *config.Config) { service.Configure(c) })
	a.DisableProofs()
	c := a.Create("/containers", `{"name": "reports"}`)
	for _, name := range []string{"a", "b", "c"} {
		upload(t, a, c, name, "bytes of "+name)
	}

	stored := func() (n int) {
		for _, name := range service.Objects(t) {
			if strings.Contains(name, "/files/") {
				n++
			}
		}

		return n
	}

	copying, deleted := make(chan struct{}), make(chan struct{})
	release, once := sync.OnceFunc(func() { close(deleted) }), sync.OnceFunc(func() { close(copying) })
	defer release()

	service.OnRequest(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" && strings.Contains(r.URL.Path, "/backups/content/") {
			once()
			<-deleted
		}

		return false
	})

	id := startBackup(t, a)
	<-copying
	a.Delete("/containers/" + c + "?force=true").Want(200)

	blobs, err := blob.OpenConfigured(a.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()

	if _, err := object.Discard(t.Context(), a.Server.Projects().Open(uuid.MustParse(a.Project)), blobs); err != nil {
		t.Fatal(err)
	}

	if n := stored(); n != 3 {
		t.Errorf("got %d stored files during the backup, want 3", n)
	}

	a.Get("/containers/" + c + "/files").Want(400)
	release()
	waitForBackup(t, a, id, "completed", "failed").Content("status", "completed")
	waitUntil(t, "the bytes are removed", func() bool { return stored() == 0 })
	restoreInPlace(t, a, id)
	a.Get("/containers/"+c).Want(200).Content("totalFiles", 3)
}

// TestBackupOfMissingFile backs up a project with a file whose bytes are missing or wrong: the
// backup fails and names the file.
func TestBackupOfMissingFile(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	c := a.Create("/containers", `{"name": "reports"}`)
	file := upload(t, a, c, "2026/a.txt", "bytes of a file")

	lose := func(how func(name string) error) {
		t.Helper()

		if err := how(a.StoredFiles("files/*/*")[0]); err != nil {
			t.Fatal(err)
		}

		waitForBackup(t, a, startBackup(t, a), "completed", "failed").
			Content("error", "the bytes of the file 2026/a.txt are missing or damaged: upload it again, or delete it")
	}

	lose(func(name string) error { return os.WriteFile(name, []byte("other of a file"), 0o600) })
	lose(os.Remove)
	a.Delete("/containers/" + c + "/files/" + file).Want(200)
	makeBackup(t, a)
}
