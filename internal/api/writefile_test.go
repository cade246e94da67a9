package api_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// put writes a file by its name.
func put(a *apitest.API, container, name, content string, headers ...string) *apitest.Reply {
	return a.Send("PUT", address(a, container, name), content,
		append([]string{"Content-Type: text/plain"}, headers...)...)
}

func TestWriteFile(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "is_public": true}`)
	created := put(a, c, "a/ü b.txt", "hello").Want(200).Content("fullFileName", "a/ü b.txt").Content("size", 5).
		Content("mimeType", "text/plain").Content("createdBy", a.User)

	const sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	if got := created.Metadata("sha256"); got != sum {
		t.Errorf("got the hash %v, want %s", got, sum)
	}

	read := a.Anonymous().Get(address(a, c, "a/ü b.txt")).Want(200)
	if read.Header.Get("ETag") != created.Metadata("etag") ||
		read.Header.Get("Repr-Digest") != "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:" {
		t.Errorf("got %v", read.Header)
	}

	dev := a.Member(4)
	repeated := put(dev, c, "a/ü b.txt", "hello, world").Want(200).Content("uuid", created.Get("uuid")).
		Content("size", 12).
		Content("createdBy", a.User).Content("updatedBy", dev.User).Content("createdAt", created.Get("createdAt"))

	replaced := a.Anonymous().Get(address(a, c, "a/ü b.txt")).Want(200)
	if string(replaced.Body) != "hello, world" || replaced.Header.Get("ETag") == read.Header.Get("ETag") ||
		replaced.Header.Get("ETag") != repeated.Metadata("etag") {
		t.Errorf("got %q with %v", replaced.Body, replaced.Header)
	}

	a.Send("GET", address(a, c, "a/ü b.txt"), "", "If-None-Match: "+read.Header.Get("ETag")).Want(200)
	a.Send("GET", address(a, c, "a/ü b.txt"), "", "Range: bytes=0-1", "If-Range: "+read.Header.Get("ETag")).Want(200)
	a.Send("GET", address(a, c, "a/ü b.txt"), "", "Range: bytes=0-1", "If-Range: "+replaced.Header.Get("ETag")).
		Want(206)

	a.Send("GET", address(a, c, "a/ü b.txt"), "", "If-Match: "+read.Header.Get("ETag")).Want(412).Code("changed")
	a.Get("/containers/"+c).Want(200).Content("totalFiles", 1)
	waitForBlobs(t, a, 1)
	wantFiles(t, a, 1)

	for claim, want := range map[string]string{
		"": "image/png", "application/x-www-form-urlencoded": "image/png", "text/html": "image/png",
		"image/svg+xml": "image/png", "image/gif": "image/gif",
	} {
		a.Send("PUT", address(a, c, "typed"), "\x89PNG\r\n\x1a\n", "Content-Type: "+claim).Want(200).
			Content("mimeType", want)
	}

	put(a, c, "empty", "").Want(200).Content("size", 0)

	if got := a.Get(address(a, c, "empty")).Want(200); len(got.Body) > 0 {
		t.Errorf("got %q", got.Body)
	}
}

func TestWriteFileRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "max_file_size": 100, "allowed_mime_types": ["text/plain"]}`)
	kept := put(a, c, "kept", "kept").Want(200)
	tag := fmt.Sprint(kept.Metadata("etag"))

	put(a, c, "kept", strings.Repeat("x", 101)).Want(413).Code("too_large")

	a.Do(
		a.Request("PUT", address(a, c, "kept"), struct {
			io.Reader
		}{strings.NewReader(strings.Repeat("x", 101))}, "Content-Type: text/plain"),
	).Want(413).Code("too_large")

	put(a, c, "kept", "x", "Content-Type: image/png").Want(422).Code("mime_type_not_allowed")
	put(a, c, "kept", "x", "Content-Type: multipart/form-data; boundary=b").Want(400).Field("Content-Type")
	put(a, c, "kept", "x", "Content-Encoding: gzip").Want(400).Field("Content-Encoding")
	put(a, c, "kept", "x", "If-None-Match: *").Want(412).Code("changed").Field("If-None-Match")
	put(a, c, "kept", "x", "If-None-Match: "+tag).Want(412)
	put(a, c, "kept", "x", `If-Match: "other"`).Want(412).Field("If-Match")
	put(a, c, "new", "x", "If-Match: *").Want(412).Field("If-Match")
	put(a, c, "kept", "x", "If-Unmodified-Since: Sat, 21 Nov 2026 00:00:00 GMT").Want(412).Field("If-Unmodified-Since")

	// The partial write of a client that resumes an upload.
	put(a, c, "kept", "x", "Content-Range: bytes 3-3/4").Want(400).Field("Content-Range")
	put(a, c, strings.Repeat("a", 1025), "x").Want(422).Field("full_file_name")
	put(a, apitest.MissingUUID, "kept", "x").Want(404)
	put(a, "garbage", "kept", "x").Want(400).Field("containerUUID")
	put(a.Member(5), c, "kept", "x").Want(403)
	put(a.Anonymous(), c, "kept", "x").Want(401)
	put(a.OtherUser(), c, "kept", "x").Want(404)

	if got := a.Get(address(a, c, "kept")).Want(200); string(got.Body) != "kept" || got.Header.Get("ETag") != tag {
		t.Errorf("got content %q", got.Body)
	}

	waitForBlobs(t, a, 1)
	wantFiles(t, a, 1)
	put(a, c, "kept", "other", "If-Match: "+tag, "If-Unmodified-Since: Sat, 21 Nov 2026 00:00:00 GMT").Want(200)
	put(a, c, "kept", "other", "If-Unmodified-Since: "+time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)).
		Want(200)
	put(a, c, "kept", "other", "If-Unmodified-Since: yesterday").Want(200)
	put(a, c, "new", "x", "If-None-Match: *").Want(200)
}

// TestWriteFileAborted checks that the existing file is kept when an upload breaks off, with and
// without a declared length.
func TestWriteFileAborted(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	put(a, c, "kept", "kept").Want(200)

	head := "PUT " + address(a, c, "kept") + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " +
		a.Token + "\r\n"
	for _, request := range []string{
		head + "Content-Length: 100\r\n\r\nhalf", head + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		_, err = io.WriteString(conn, request)
		if err = errors.Join(err, conn.(*net.TCPConn).CloseWrite()); err != nil {
			t.Fatal(err)
		}

		if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") ||
			!strings.Contains(string(answer), `"incomplete_body"`) {
			t.Errorf("got %q, %v", answer, err)
		}
	}

	until(t, "it is removed completely", func() bool {
		return query[int](t, a, "select count(*) from storage.uploads") == 0
	})

	if got := a.Get(address(a, c, "kept")).Want(200); string(got.Body) != "kept" {
		t.Errorf("got content %q", got.Body)
	}

	wantFiles(t, a, 1)
}

// TestWriteFileConcurrently checks that one of many concurrent writes of a file is the last, and
// that readers always get a complete version.
func TestWriteFileConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	content := func(i int) string { return strings.Repeat(string(rune('a'+i)), 10_000+i) }
	put(a, c, "same", content(0)).Want(200)
	stop, readers := make(chan struct{}), sync.WaitGroup{}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}

				r := a.Get(address(a, c, "same"))
				if i := int(r.Body[0] - 'a'); r.Status != 200 || string(r.Body) != content(i) {
					t.Errorf("got %d, %d bytes starting with %.10q", r.Status, len(r.Body), r.Body)
					return
				}
			}
		})
	}

	wantCounts(t, concurrently(20, func(i int) *apitest.Reply { return put(a, c, "same", content(i)) }),
		map[int]int{200: 20})
	close(stop)
	readers.Wait()
	a.Get("/containers/"+c).Want(200).Content("totalFiles", 1)
	waitForBlobs(t, a, 1)
	wantFiles(t, a, 1)

	tag := a.Get(address(a, c, "same")).Want(200).Header.Get("ETag")
	wantCounts(t, concurrently(10, func(i int) *apitest.Reply {
		return put(a, c, "same", fmt.Sprint("changed ", i), "If-Match: "+tag)
	}), map[int]int{200: 1, 412: 9})

	wantCounts(t, concurrently(10, func(int) *apitest.Reply { return put(a, c, "new", "x", "If-None-Match: *") }),
		map[int]int{200: 1, 412: 9})

	// With concurrent deletions.
	counts := concurrently(20, func(i int) *apitest.Reply {
		if i%2 == 0 {
			return put(a, c, "flighty", fmt.Sprint(i))
		}
		return a.Delete("/containers/" + c + "/files/" + fmt.Sprint(put(a, c, "flighty", "x").Get("uuid")))
	})

	wantStatuses(t, counts, 200, 404)
}

func TestFilesFromAnywhere(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "open", "is_public": true}`)
	put(a, c, "a.txt", "hello").Want(200)

	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		h := a.Anonymous().Send(method, address(a, c, "a.txt"), "", "Origin: https://evil.example",
			"Access-Control-Request-Method: PUT").Header
		if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: got %v", method, h)
		}
	}

	if got := a.Anonymous().Send("OPTIONS", address(a, c, "a.txt"), "").
		Want(204).Header.Get("Access-Control-Allow-Methods"); got != "GET, HEAD, PUT" {
		t.Errorf("got %q", got)
	}
	if h := a.Send("GET", "/containers/"+c, "",
		"Origin: https://evil.example").Header; h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("got %v", h)
	}
}
