package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/blob/blobtest"

	"github.com/google/uuid"
)

// TestFilesInS3 covers S3 storage as the other tests cover folders.
func TestFilesInS3(t *testing.T) {
	t.Parallel()

	service := blobtest.New(t)
	a := apitest.New(t, service.Configure)
	c := a.Create("/containers", `{"name": "reports", "is_public": true, "max_file_size": 20000000}`)

	stored := func(want int) {
		t.Helper()

		until(t, fmt.Sprint(want, " objects"), func() bool { return len(service.Objects(t)) == want })
	}

	large := bytes.Repeat([]byte("0123456789abcdef"), 1_100_000)
	id := upload(a, c, "a/large.bin", string(large)).Want(201).Content("size", len(large)).Get("uuid").(string)
	empty := upload(a, c, "empty", "").Want(201).Content("size", 0).Get("uuid").(string)

	// Object keys contain no file names.
	for i, name := range []string{
		"%2e%2e%2fetc", "e\u0301", "é", "É", "CON", "-rf", "a:b?c#d", "+ &", strings.Repeat("a", 1024),
	} {
		upload(a, c, name, fmt.Sprint(i)).Want(201)
		if got := a.Anonymous().Get(address(a, c, name)).Want(200); string(got.Body) != fmt.Sprint(i) {
			t.Errorf("%q: got %q", name, got.Body)
		}
	}

	stored(11)
	wantObjects(t, service)

	path := "/containers/" + c + "/files/" + id
	if got := a.Get(path + "/download").Want(200); !bytes.Equal(got.Body, large) {
		t.Errorf("got %d other bytes, want %d", len(got.Body), len(large))
	}

	if got := a.Get("/containers/" + c + "/files/" + empty + "/download").Want(200); len(got.Body) != 0 {
		t.Errorf("got %d bytes of an empty file", len(got.Body))
	}

	for span, want := range map[string]string{
		"bytes=0-0": "0", "bytes=17599998-": "ef", "bytes=-3": "def", "bytes=8388606-8388609": "ef01",
	} {
		if got := a.Send("GET", path+"/download", "", "Range: "+span).Want(206); string(got.Body) != want {
			t.Errorf("%s: got %q, want %q", span, got.Body, want)
		}
	}

	a.Send("GET", path+"/download", "", "Range: bytes=17600000-").Want(416)

	if got := a.Send("GET", path+"/download", "", "Range: bytes=0-1,16-17").
		Want(206); !bytes.Contains(got.Body, []byte("01\r\n")) {
		t.Errorf("two ranges: got %q", got.Body)
	}

	upload(a, c, "too-large", string(large)+string(large)).Want(413)
	upload(a, c, "empty", "x").Want(409)
	stored(11)

	a.Delete(path).Want(200)
	stored(10)

	created := a.Post("/backups", `{}`).Want(201).Get("uuid").(string)
	waitForBackup(t, a, created).Content("status", "completed")

	if _, err := os.Stat(
		filepath.Join(service.Dir, "some/prefix", backup.DumpKey(uuid.MustParse(a.Project), uuid.MustParse(created))),
	); err != nil {
		t.Error(err)
	}

	a.Delete("/containers/" + c + "?force=true").Want(200)

	until(t, "only the objects of the backup remain", func() bool {
		return !slices.ContainsFunc(service.Objects(t), func(path string) bool {
			return objectKey.MatchString(strings.TrimPrefix(path, service.Dir))
		})
	})

	loseResponse(t, service, a)
}

var objectKey = regexp.MustCompile(`^/some/prefix/projects/[0-9a-f-]{36}/files/[0-9a-f]{2}/[0-9a-f-]{36}$`)

// wantObjects fails the test unless every object key has our format.
func wantObjects(t *testing.T, service *blobtest.S3) {
	t.Helper()

	for _, path := range service.Objects(t) {
		if !objectKey.MatchString(strings.TrimPrefix(path, service.Dir)) {
			t.Errorf("unexpected object %s", path)
		}
	}
}

// TestS3Fails checks that uploads return a clear error when the storage fails, and leave neither
// rows nor bytes.
func TestS3Fails(t *testing.T) {
	t.Parallel()

	service := blobtest.New(t)
	a := apitest.New(t, service.ConfigureShortTimeout)
	c := a.Create("/containers", `{"name": "reports"}`)
	id := upload(a, c, "before", "before").Want(201).Get("uuid").(string)
	download := "/containers/" + c + "/files/" + id + "/download"
	stored, large := 1, strings.Repeat("x", 9<<20)

	for name, fail := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"500": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true },
		"slow": func(_ http.ResponseWriter, r *http.Request) bool {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()

			return true
		},
		"cut off": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			a := a.WithT(t)

			service.OnRequest(fail)
			upload(a, c, name+", small", "small").Want(503)
			put(a, c, name+", large", large).Want(503)
			a.Get(download).Want(503)
			a.Get("/containers/" + c + "/files").Want(200) // other operations still work

			created := a.Post("/backups", `{}`).Want(201).Get("uuid").(string)
			waitForBackup(t, a, created).Content("status", "failed")

			service.OnRequest(nil)
			a.Get("/readyz?full=1") // removes the object left by a check that timed out

			if got := service.Objects(t); len(got) != stored {
				t.Errorf("got objects %q, want %d", got, stored)
			}
			if rows := query[int](t, a, "select count(*) from storage.files"); rows != stored {
				t.Errorf("got %d files, want %d", rows, stored)
			}

			a.Get(download).Want(200)
			upload(a, c, name+", small", "small").Want(201)
			stored++
		})
	}

	put(a, c, "large", large).Want(200)
}

// loseResponse loses the response to a request that has created the object. The file exists.
func loseResponse(t *testing.T, service *blobtest.S3, a *apitest.API) {
	t.Helper()

	c, before := a.Create("/containers", `{"name": "lost"}`), len(service.Objects(t))
	var lost atomic.Bool
	service.DropResponses(func(r *http.Request) bool { return r.Method == "PUT" && lost.CompareAndSwap(false, true) })

	id := upload(a, c, "a", "hello").Want(201).Get("uuid").(string)
	got := a.Get("/containers/" + c + "/files/" + id + "/download").Want(200).Body
	if string(got) != "hello" || !lost.Load() {
		t.Errorf("got %q", got)
	}

	if got := len(service.Objects(t)); got != before+1 {
		t.Errorf("got %d objects, want one more than %d", got, before)
	}
}
