package api_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/object"
)

// tus sends a request of the tus protocol.
func tus(a *apitest.API, method, path, body string, headers ...string) *apitest.Reply {
	return a.Send(method, path, body,
		append([]string{"Tus-Resumable: 1.0.0", "Content-Type: application/offset+octet-stream"}, headers...)...)
}

// newTus creates an upload and returns its path.
func newTus(t *testing.T, a *apitest.API, container, name string, size int, more ...string) string {
	t.Helper()

	r := tus(a, "POST", "/containers/"+container+"/tus", "",
		append(
			[]string{
				"Upload-Length: " + strconv.Itoa(size),
				"Upload-Metadata: filename " + base64.StdEncoding.EncodeToString([]byte(name)),
			}, more...,
		)...).Want(201)
	if r.Header.Get("Upload-Expires") == "" || r.Header.Get("Tus-Resumable") != "1.0.0" {
		t.Errorf("got %v", r.Header)
	}

	return strings.TrimPrefix(r.Header.Get("Location"), a.URL)
}

func patchTus(a *apitest.API, path string, offset int, body string) *apitest.Reply {
	return tus(a, "PATCH", path, body, "Upload-Offset: "+strconv.Itoa(offset))
}

// wantOffset fails the test unless the upload has this number of bytes.
func wantOffset(t *testing.T, r *apitest.Reply, status, offset int) {
	t.Helper()

	if r.Want(status); r.Header.Get("Upload-Offset") != strconv.Itoa(offset) {
		t.Errorf("got offset %q, want %d", r.Header.Get("Upload-Offset"), offset)
	}
}

func TestTus(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	options := a.Anonymous().Send("OPTIONS", "/containers/"+c+"/tus", "").Want(204).Header
	for name, want := range map[string]string{
		"Tus-Version":            "1.0.0",
		"Tus-Extension":          "creation,creation-defer-length,termination,expiration,checksum",
		"Tus-Checksum-Algorithm": "sha1,sha256", "Tus-Max-Size": "5368709120", "Access-Control-Allow-Origin": "*",
	} {
		if got := options.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}

	u := newTus(t, a, c, "a/ü.txt", 12,
		"Upload-Metadata: filename "+base64.StdEncoding.EncodeToString([]byte("a/ü.txt"))+
			",filetype dGV4dC9wbGFpbg==,alone")
	wantOffset(t, tus(a, "HEAD", u, ""), 200, 0)

	if got := tus(a, "HEAD", u, "").Header.Get("Upload-Metadata"); got !=
		"filename YS/DvC50eHQ=,filetype dGV4dC9wbGFpbg==,alone" {
		t.Errorf("got Upload-Metadata %q", got)
	}

	execute(t, a, "update storage.resumable_uploads set expires_at = now() + interval '1 minute'")
	first := patchTus(a, u, 0, "hello")
	wantOffset(t, first, 204, 5)

	if until, err := http.ParseTime(first.Header.Get("Upload-Expires")); err != nil || time.Until(until) < time.Hour {
		t.Errorf("a resumed upload: got expiry %v, %v", until, err)
	}

	patchTus(a, u, 0, "hello").Want(409).Code("mismatch")
	patchTus(a, u, 5, "more than there is").Want(413).Code("too_large")
	wantOffset(t, tus(a.Member(4), "HEAD", u, ""), 200, 5)
	a.Get(address(a, c, "a/ü.txt")).Want(404)
	wantOffset(t, patchTus(a, u, 5, ", "), 204, 7)
	wantOffset(t, patchTus(a, u, 7, "world"), 204, 12)

	if got := a.Get(address(a, c, "a/ü.txt")).Want(200); string(got.Body) != "hello, world" ||
		got.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("got %q, %v", got.Body, got.Header)
	}

	wantOffset(t, tus(a, "HEAD", u, ""), 200, 12)
	patchTus(a, u, 7, "world").Want(409)
	newTus(t, a, c, "empty", 0)
	a.Get(address(a, c, "empty")).Want(200)

	// The client cancels an upload, and can send POST only.
	const override = "X-HTTP-Method-Override: "
	u = newTus(t, a, c, "b", 10)
	wantOffset(t, tus(a, "POST", u, "hello", "Upload-Offset: 0", override+"PATCH"), 204, 5)
	tus(a, "POST", u, "", override+"DELETE").Want(204)
	tus(a, "HEAD", u, "").Want(404)
	tus(a, "DELETE", u, "").Want(404)
	patchTus(a, u, 5, "hello").Want(404)
	u = newTus(t, a, c, "b", 10)
	patchTus(a, u, 0, "hello").Want(204)
	execute(t, a, "update storage.resumable_uploads set expires_at = now() where file_uuid is null")
	tus(a, "HEAD", u, "").Want(404)

	store, err := blob.Open(a.Config.StorageDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	p := a.Server.Projects().Open(uuid.MustParse(a.Project))
	_, swept := object.Sweep(t.Context(), p, store, time.Hour)

	_, discarded := object.Discard(t.Context(), p, store)
	if err := errors.Join(swept, discarded); err != nil {
		t.Fatal(err)
	}

	if n := query[int](t, a, "select count(*) from storage.resumable_uploads where file_uuid is null"); n != 0 {
		t.Errorf("got %d uploads, want none", n)
	}

	waitForBlobs(t, a, 2)
	wantFiles(t, a, 2)
	checkCounts(t, a)
}

func TestTusRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "max_file_size": 100, "allowed_mime_types": ["text/plain"]}`)
	put(a, c, "taken", "x").Want(200)

	path, named := "/containers/"+c+"/tus", func(name string) string {
		return "Upload-Metadata: filename " + base64.StdEncoding.EncodeToString([]byte(name))
	}
	a.Send("POST", path, "", "Upload-Length: 1", named("a")).Want(412)

	if got := a.Send("POST", path, "", "Upload-Length: 1", named("a"), "Tus-Resumable: 0.2.2").
		Want(412).Header.Get("Tus-Version"); got != "1.0.0" {
		t.Errorf("got %q for another version", got)
	}

	tus(a, "POST", path, "", named("a")).Want(400).Field("Upload-Length")
	tus(a, "POST", path, "", named("a"), "Upload-Length: -1").Want(400)
	tus(a, "POST", path, "", named("a"), "Upload-Length: 1", "Upload-Concat: partial").Want(400).Field("Upload-Concat")
	for _, metadata := range []string{
		"filename =", "filename YQ==,filename Yg==", "filename YQ==,,x", "x " + strings.Repeat("A", 9000),
	} {
		tus(a, "POST", path, "", "Upload-Length: 1", "Upload-Metadata: "+metadata).Want(400).Field("Upload-Metadata")
	}
	tus(a, "POST", path, "", "Upload-Length: 1").Want(422).Field("full_file_name")
	tus(a, "POST", path, "", "Upload-Length: 1", named("../a")).Want(422)
	tus(a, "POST", path, "", "Upload-Length: 1", named("taken")).Want(409)
	tus(a, "POST", path, "", "Upload-Length: 101", named("a")).Want(413)
	tus(a, "POST", path, "", "Upload-Length: 1", named("a")+",filetype aW1hZ2UvcG5n").Want(422).
		Code("mime_type_not_allowed")

	tus(a, "POST", "/containers/"+apitest.MissingUUID+"/tus", "", "Upload-Length: 1", named("a")).Want(404)
	u := newTus(t, a, c, "a", 10)
	for _, caller := range []struct {
		api    *apitest.API
		status int
	}{{a.Anonymous(), 401}, {a.OtherUser(), 401}, {a.Member(5), 403}} {
		tus(caller.api, "POST", path, "", "Upload-Length: 1", named("b")).Want(caller.status)
		tus(caller.api, "HEAD", u, "").Want(caller.status)
		patchTus(caller.api, u, 0, "x").Want(caller.status)
		tus(caller.api, "DELETE", u, "").Want(caller.status)
	}

	tus(a, "PATCH", u, "x", "Upload-Offset: 0", "Content-Type: text/plain").Want(400).Field("Content-Type")
	tus(a, "PATCH", u, "x").Want(400).Field("Upload-Offset")
	tus(a, "HEAD", strings.ReplaceAll(u, c, a.Create("/containers", `{"name": "other"}`)), "").Want(404)

	// Received bytes are validated too, and the name can be taken in the meantime.
	patchTus(a, u, 0, "\x89PNG\r\n\x1a\n..").Want(422).Code("mime_type_not_allowed")
	a.Get(address(a, c, "a")).Want(404)
	u = newTus(t, a, c, "b", 1)
	put(a, c, "b", "first").Want(200)
	patchTus(a, u, 0, "x").Want(409).Code("already_exists")
	execute(t, a, "update storage.usage set max_bytes = 50")
	tus(a, "POST", path, "", "Upload-Length: 45", named("c")).Want(413).Code("quota_exceeded")
	newTus(t, a, c, "c", 20)
	tus(a, "POST", path, "", "Upload-Length: 20", named("d")).Want(413).Code("quota_exceeded")
}

// TestTusChecksum checks that a part with a wrong checksum is discarded, as is one that breaks off
// and cannot be checked.
func TestTusChecksum(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	u := newTus(t, a, c, "checked", 10)
	sha1Of, sha256Of := sha1.Sum([]byte("hello")), sha256.Sum256([]byte("hello"))

	checked := func(offset int, body, algorithm string, sum []byte) *apitest.Reply {
		return tus(a, "PATCH", u, body, "Upload-Offset: "+strconv.Itoa(offset),
			"Upload-Checksum: "+algorithm+" "+base64.StdEncoding.EncodeToString(sum))
	}

	checked(0, "jello", "sha1", sha1Of[:]).Want(460).Code("checksum_mismatch")
	checked(0, "jello", "sha256", sha256Of[:]).Want(460)
	checked(0, "hello", "md5", sha1Of[:]).Want(400).Field("Upload-Checksum")
	checked(0, "hello", "sha256", sha1Of[:]).Want(400).Field("Upload-Checksum")
	tus(a, "PATCH", u, "hello", "Upload-Offset: 0", "Upload-Checksum: sha1 ?").Want(400)
	checked(0, "hell", "sha1", sha1Of[:]).Want(460)
	wantOffset(t, tus(a, "HEAD", u, ""), 200, 0)
	wantOffset(t, checked(0, "hello", "sha1", sha1Of[:]), 204, 5)
	checked(5, "jello", "sha1", sha1Of[:]).Want(460)
	wantOffset(t, checked(5, "hello", "sha256", sha256Of[:]), 204, 10)

	if got := a.Get(address(a, c, "checked")).Want(200); string(got.Body) != "hellohello" {
		t.Errorf("got %q", got.Body)
	}

	waitForBlobs(t, a, 1)
	wantFiles(t, a, 1)
}

// TestTusDeferred checks that the length of an upload can be declared with a later part, and is
// fixed from then on.
func TestTusDeferred(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "max_file_size": 20}`)
	path, named := "/containers/"+c+"/tus", "Upload-Metadata: filename "+base64.StdEncoding.EncodeToString([]byte("a"))
	tus(a, "POST", path, "", named, "Upload-Defer-Length: 2").Want(400).Field("Upload-Defer-Length")
	tus(a, "POST", path, "", named, "Upload-Defer-Length: 1", "Upload-Length: 5").Want(400).Field("Upload-Length")

	begin := func() string {
		return strings.TrimPrefix(tus(a, "POST", path, "", named, "Upload-Defer-Length: 1").
			Want(201).Header.Get("Location"), a.URL)
	}
	u := begin()
	if h := tus(a, "HEAD", u, "").Want(200).Header; h.Get("Upload-Defer-Length") != "1" ||
		h.Get("Upload-Length") != "" || h.Get("Upload-Offset") != "0" {
		t.Errorf("got %v", h)
	}

	last := func(offset, length int, body string) *apitest.Reply {
		return tus(a, "PATCH", u, body, "Upload-Offset: "+strconv.Itoa(offset), "Upload-Length: "+strconv.Itoa(length))
	}

	wantOffset(t, patchTus(a, u, 0, "hello"), 204, 5)
	patchTus(a, u, 5, strings.Repeat("x", 16)).Want(413).Code("too_large")
	last(5, 21, "x").Want(413).Code("too_large")
	last(5, 4, "x").Want(400).Field("Upload-Length")
	a.Get(address(a, c, "a")).Want(404)
	wantOffset(t, last(5, 12, ", "), 204, 7)
	last(7, 13, "world").Want(400).Field("Upload-Length")
	last(7, 12, "world!").Want(413)
	wantOffset(t, last(7, 12, "world"), 204, 12)

	if got := a.Get(address(a, c, "a")).Want(200); string(got.Body) != "hello, world" {
		t.Errorf("got %q", got.Body)
	}

	a.Delete("/containers/" + c + "/files/" + a.Get("/containers/"+c+"/files").Get("0.uuid").(string)).Want(200)

	// The quota counts received and declared bytes.
	execute(t, a, "update storage.usage set max_bytes = 8")
	u = begin()
	wantOffset(t, patchTus(a, u, 0, "hello"), 204, 5)
	patchTus(a, u, 5, "hello").Want(413).Code("quota_exceeded")
	last(5, 9, "x").Want(413).Code("quota_exceeded")
	wantOffset(t, last(5, 8, "yes"), 204, 8)
}

// TestTusInterrupted checks that the received bytes of an interrupted part are kept, and that the
// upload resumes there.
func TestTusInterrupted(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	u := newTus(t, a, c, "broken", 10)

	conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	_, err = fmt.Fprintf(conn,
		"PATCH %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\nX-Project: %s\r\nTus-Resumable: 1.0.0\r\n"+
			"Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\nContent-Length: 10\r\n\r\nhalf", u,
		a.Token, a.Project)
	if err = errors.Join(err, conn.(*net.TCPConn).CloseWrite()); err != nil {
		t.Fatal(err)
	}

	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("got %q, %v", answer, err)
	}

	wantOffset(t, tus(a, "HEAD", u, ""), 200, 4)
	// One of several concurrent requests at the same offset succeeds.
	counts := concurrently(8, func(i int) *apitest.Reply {
		return patchTus(a, u, 4, strings.Repeat(strconv.Itoa(i), 6))
	})
	wantCounts(t, counts, map[int]int{204: 1, 409: 7})

	got := a.Get(address(a, c, "broken")).Want(200)
	if text := string(got.Body); len(text) != 10 || text[:4] != "half" || strings.Count(text, text[4:5]) != 6 {
		t.Errorf("got %q", text)
	}

	waitForBlobs(t, a, 1)
	wantFiles(t, a, 1)
}

// TestTusLostResponse covers a server that died after the last part and before it created the
// file. A request for the offset creates it.
func TestTusLostResponse(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	u := newTus(t, a, c, "lost", 5)
	patchTus(a, u, 0, "hell").Want(204)
	execute(t, a, "update storage.resumable_uploads set size = 4") // as if this had been the last part
	wantCounts(t, concurrently(4, func(int) *apitest.Reply { return tus(a, "HEAD", u, "") }), map[int]int{200: 4})

	if got := a.Get(address(a, c, "lost")).Want(200); string(got.Body) != "hell" {
		t.Errorf("got %q", got.Body)
	}

	waitForBlobs(t, a, 1)
}
