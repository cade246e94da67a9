package api_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
)

// storedCounter returns a function that counts the stored blobs of a project, in a folder or in S3.
func storedCounter(t *testing.T, dir string) func() int {
	return func() int {
		n := 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.Contains(path, "/files/") {
				n++
			}
			return nil // deleted during the walk
		})
		if err != nil {
			t.Error(err)
		}

		return n
	}
}

// TestVariants checks the stored bytes of variants, in both kinds of storage.
func TestVariants(t *testing.T) {
	t.Parallel()

	t.Run("folder", func(t *testing.T) {
		t.Parallel()

		a := apitest.Shared(t)
		variants(t, a, storedCounter(t, a.BlobDir()))
	})

	t.Run("S3", func(t *testing.T) {
		t.Parallel()

		service := blobtest.New(t)
		a := apitest.New(t, service.Configure)

		var written atomic.Int64
		service.OnRequest(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				written.Add(1)
			}
			return false
		})

		variants(t, a, storedCounter(t, service.Dir))

		if got, want := written.Load(), int64(3+5); got != want {
			t.Errorf("got %d blobs, want %d: a variant was created twice", got, want)
		}
	})
}

func variants(t *testing.T, a *apitest.API, stored func() int) {
	t.Helper()

	c := a.Create("/containers", `{"name": "pictures", "is_public": true}`)
	photo := asJPEG(t, quarters(400, 300))
	id := fmt.Sprint(put(a, c, "a.jpg", photo).Want(200).Get("uuid"))
	path := address(a, c, "a.jpg")

	rows := func(want int) {
		t.Helper()

		if got := query[int](t, a, "select count(*) from storage.variants"); got != want {
			t.Errorf("got %d variants, want %d", got, want)
		}
		if got := query[int](t, a, "select count(*) from storage.uploads"); got != 0 {
			t.Errorf("got %d arriving blobs, want none", got)
		}
	}

	// Many concurrent requests for one variant, with different parameters, create it once.
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			r := a.Get(path + "?width=100" + []string{"", "&quality=80"}[i%2])
			if r.Status != 200 || r.Header.Get("Content-Type") != "image/jpeg" {
				t.Errorf("got %d %v", r.Status, r.Header)
			}
		})
	}

	group.Wait()
	rows(1)
	a.Get("/containers/" + c + "/files/" + id + "/download?width=100").Want(200)

	first := a.Get(path + "?width=100").Want(200)
	a.Get(path + "?width=50").Want(200)
	rows(2)
	until(t, "a file and two variants", func() bool { return stored() == 3 })
	a.Get("/containers/"+c).Want(200).Content("totalFiles", 1)

	// A signed URL is valid for the variants of its file, and not for those of another one.
	signed := signedPath(a, a.Post("/containers/"+c+"/files/"+id+"/signed-url", `{}`))
	a.Put("/containers/"+c, `{"is_public": false}`).Want(200)
	anonymous := a.Anonymous().WithProject("")
	if r := anonymous.Get(signed + "&width=100").Want(200); r.Header.Get("ETag") != first.Header.Get("ETag") {
		t.Errorf("got the picture %s, want %s", r.Header.Get("ETag"), first.Header.Get("ETag"))
	}

	anonymous.Get(path + "?width=100").Want(404)
	anonymous.Get(signed + "&width=0").Want(400)

	sign := "/containers/" + c + "/files/" + id + "/signed-url"
	small := signedPath(a, a.Post(sign, `{"picture": {"width": 100}}`)) // valid for this variant only
	if r := anonymous.Get(small).Want(200); r.Header.Get("ETag") != first.Header.Get("ETag") {
		t.Errorf("got the picture %s, want %s", r.Header.Get("ETag"), first.Header.Get("ETag"))
	}

	anonymous.Get(small + "&width=200").Want(401).Code("invalid_signature")
	anonymous.Get(small + "&format=png").Want(401)
	anonymous.Get(small + "&v=2").Want(200)
	a.Post(sign, `{"picture": {}}`).Want(422).Field("picture")
	a.Post(sign, `{"picture": {"width": 100, "fit": "cover"}}`).Want(422).Field("picture.fit")
	a.Post(sign, `{"picture": {"width": 0}}`).Want(422).Field("picture.width")
	a.Put("/containers/"+c, `{"is_public": true}`).Want(200)

	// A variant without its bytes is created again.
	execute(t, a,
		"update storage.variants set blob_uuid = gen_random_uuid() where size = (select max(size) from storage.variants)")

	if r := a.Get(path + "?width=100").Want(200); r.Header.Get("ETag") != first.Header.Get("ETag") {
		t.Errorf("got the picture %s, want %s", r.Header.Get("ETag"), first.Header.Get("ETag"))
	}

	rows(2)

	// Variants are deleted with new bytes, and with their file.
	put(a, c, "a.jpg", asPNG(t, quarters(40, 30))).Want(200)
	rows(0)

	if r := a.Get(path + "?width=20").Want(200); r.Header.Get("Content-Type") != "image/png" {
		t.Errorf("got %s of the new bytes", r.Header.Get("Content-Type"))
	}

	rows(1)
	a.Put("/containers/"+c+"/files/"+id, `{"full_file_name": "b.jpg"}`).Want(200)
	a.Get(address(a, c, "b.jpg") + "?width=20").Want(200)
	rows(1)
	a.Delete("/containers/" + c + "/files/" + id).Want(200)
	rows(0)
	a.Get(address(a, c, "b.jpg") + "?width=20").Want(404)
	put(a, c, "c.jpg", photo).Want(200)
	a.Get(address(a, c, "c.jpg") + "?width=20").Want(200)
	a.Delete("/containers/" + c + "?force=true").Want(200)
	until(t, "only the lost blob remains", func() bool { return stored() == 1 })
}

// TestVariantsDuringReplacement checks that concurrent requests get a variant of old or new bytes,
// and that no variant of old bytes is kept.
func TestVariantsDuringReplacement(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "pictures"}`)
	path := address(a, c, "a")
	pictures := []string{asPNG(t, quarters(40, 40)), asPNG(t, quarters(60, 60))}
	put(a, c, "a", pictures[0]).Want(200)

	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 10 {
				if r := a.Get(fmt.Sprint(path, "?width=", 10+i*10+j)); r.Status != 200 {
					t.Errorf("got %d: %s", r.Status, r.Body)
				}
			}
		})
	}

	for i := range 10 {
		put(a, c, "a", pictures[i%2]).Want(200)
	}

	group.Wait()

	if n := query[int](t, a,
		"select count(*) from storage.variants where source_uuid not in (select blob_uuid from storage.files)"); n !=
		0 {
		t.Errorf("got %d variants of replaced bytes, want none", n)
	}

	a.Delete("/containers/" + c + "?force=true").Want(200)
	stored := storedCounter(t, a.BlobDir())
	until(t, "nothing is left", func() bool { return stored() == 0 })
}

// TestTooManyPictures blocks a project's image processing in the storage until its queue is full.
// Other projects are not affected.
func TestTooManyPictures(t *testing.T) {
	t.Parallel()

	const maxPerProject = 18 // three quarters of what an account may have
	service := blobtest.New(t)
	a := apitest.New(t, func(c *config.Config) {
		service.Configure(c)
		c.StorageURL = strings.Replace(c.StorageURL, "timeout=5s", "timeout=60s", 1)
	})

	c := a.Create("/containers", `{"name": "pictures"}`)
	id := fmt.Sprint(put(a, c, "a", asPNG(t, quarters(40, 40))).Want(200).Get("uuid"))
	path := address(a, c, "a")
	other := a.WithProject(a.CreateProject("other"))
	theirs := other.Create("/containers", `{"name": "pictures"}`)
	put(other, theirs, "a", asPNG(t, quarters(40, 40))).Want(200)

	waiting, goOn := make(chan struct{}, 10*maxPerProject), make(chan struct{})
	proceed := sync.OnceFunc(func() { close(goOn) })
	defer proceed()

	service.OnRequest(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead && strings.Contains(r.URL.Path, a.Project) {
			waiting <- struct{}{}
			<-goOn
		}

		return false
	})

	var group sync.WaitGroup
	for i := range maxPerProject {
		group.Go(func() { a.Get(fmt.Sprint(path, "?width=", i+1)) }) // can take longer than the request timeout
	}

	for range maxPerProject {
		<-waiting
	}

	for _, refused := range []*apitest.Reply{
		a.Get(path + "?width=30"), a.Get("/containers/" + c + "/files/" + id + "/download?width=30"),
	} {
		if refused.Want(429).Header.Get("Retry-After") == "" {
			t.Error("a 429 has no Retry-After")
		}
	}

	other.Get(address(other, theirs, "a") + "?width=30").Want(200)
	proceed()
	group.Wait()
	service.OnRequest(nil)
	a.Get(path + "?width=30").Want(200)
}
