package server_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestResumableObjects has end users upload objects in parts by tus-js-client, under policies.
func TestResumableObjects(t *testing.T) {
	t.Parallel()

	s := titlesProject{API: apitest.Shared(t), t: t}
	s.Post("/containers", `{"name":"avatars"}`).Want(201)
	owner := s.Server.Projects().Open(uuid.MustParse(s.Project)).Owner()
	if _, err := owner.Exec(t.Context(), storagePolicies); err != nil {
		t.Fatal(err)
	}

	runNode(t, clients, append(os.Environ(), "SOCLE_PROJECT="+s.URL+"/projects/"+s.Project,
		"SOCLE_PUBLISHABLE="+s.key("browser", "publishable"), "SOCLE_SECRET="+s.key("server", "secret")),
		"tusobjects.mjs")
}

// TestDeferredLength uploads an object whose length the client tells after the first bytes.
func TestDeferredLength(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	s := titlesProject{API: a, t: t}
	a.Post("/containers", `{"name":"letters", "max_file_size": 10}`).Want(201)
	f := files{t, a.URL + "/projects/" + a.Project + "/storage/v1", s.key("uploads", "secret")}

	send := func(status int, want, method, path, body string, headers ...string) http.Header {
		t.Helper()
		h, _ := f.wantSecret(status, want, method, path, body, append(headers, "Tus-Resumable: 1.0.0",
			"Content-Type: application/offset+octet-stream")...)
		return h
	}
	tus := func(status int, method, path, body string, headers ...string) http.Header {
		t.Helper()
		return send(status, "", method, path, body, headers...)
	}
	is := func(step string, h http.Header, offset, length, deferred string) {
		t.Helper()
		got := h.Get("Upload-Offset") + " " + h.Get("Upload-Length") + " " + h.Get("Upload-Defer-Length")
		if want := offset + " " + length + " " + deferred; got != want {
			t.Errorf("%s: got %q, want %q", step, got, want)
		}
	}

	const create = "/upload/resumable"
	name := "Upload-Metadata: bucketName " + base64.StdEncoding.EncodeToString([]byte("letters")) +
		",objectName " + base64.StdEncoding.EncodeToString([]byte("a.txt"))
	tus(400, "POST", create, "", name)
	tus(400, "POST", create, "", name, "Upload-Defer-Length: 2")
	tus(400, "POST", create, "", name, "Upload-Defer-Length: 1", "Upload-Length: 3")

	made := tus(201, "POST", create, "one", name, "Upload-Defer-Length: 1")
	is("creation", made, "3", "", "1")
	path := create + made.Get("Location")[strings.LastIndexByte(made.Get("Location"), '/'):]

	is("more bytes", tus(204, "PATCH", path, "two", "Upload-Offset: 3"), "6", "", "1")
	f.wantSecret(400, "Object not found", "GET", "/object/letters/a.txt", "")
	head := tus(200, "POST", path, "", "X-HTTP-Method-Override: HEAD")
	if got := head.Get("Upload-Metadata"); !strings.HasPrefix(got, "bucketName ") {
		t.Errorf("got Upload-Metadata %q", got)
	}
	tus(409, "PATCH", path, "", "Upload-Offset: 6", "Upload-Length: 5")
	tus(413, "PATCH", path, "", "Upload-Offset: 6", "Upload-Length: 11")
	send(413, "Maximum size exceeded", "PATCH", path, "seven", "Upload-Offset: 6")
	send(409, "Upload-Offset conflict", "PATCH", path, "two", "Upload-Offset: 3")
	is("the length", tus(204, "PATCH", path, "", "Upload-Offset: 6", "Upload-Length: 8"), "6", "8", "")
	tus(409, "PATCH", path, "", "Upload-Offset: 6", "Upload-Length: 9")
	is("the head", tus(200, "HEAD", path, ""), "6", "8", "")
	is("the last bytes", tus(204, "PATCH", path, "!?", "Upload-Offset: 6", "Upload-Length: 8"), "8", "8", "")
	f.wantSecret(200, "onetwo!?", "GET", "/object/letters/a.txt", "")
}

// TestUploadOfServer checks that a browser, whose key has no user either, has no part in the upload
// of a server.
func TestUploadOfServer(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	s := titlesProject{API: a, t: t}
	a.Post("/containers", `{"name":"letters"}`).Want(201)
	f := files{t, a.URL + "/projects/" + a.Project + "/storage/v1", s.key("uploads", "secret")}
	browser := "apikey: " + s.key("browser", "publishable")

	tus := []string{"Tus-Resumable: 1.0.0", "Content-Type: application/offset+octet-stream"}
	metadata := func(name string) string {
		return "Upload-Metadata: bucketName " + base64.StdEncoding.EncodeToString([]byte("letters")) +
			",objectName " + base64.StdEncoding.EncodeToString([]byte(name))
	}
	made, _ := f.wantSecret(201, "", "POST", "/upload/resumable", "one",
		append(tus, metadata("a.txt"), "Upload-Length: 6")...)
	path := "/upload/resumable" + made.Get("Location")[strings.LastIndexByte(made.Get("Location"), '/'):]

	f.want(403, "row-level security", "PATCH", path, "bad", append(tus, browser, "Upload-Offset: 3")...)
	f.want(403, "", "HEAD", path, "", append(tus, browser)...)
	f.want(403, "row-level security", "DELETE", path, "", append(tus, browser)...)
	f.wantSecret(204, "", "PATCH", path, "two", append(tus, "Upload-Offset: 3")...)
	f.wantSecret(200, "onetwo", "GET", "/object/letters/a.txt", "")

	// Names are those of the contract.
	f.wantSecret(400, "Invalid key: ../a", "POST", "/upload/resumable", "",
		append(tus, metadata("../a"), "Upload-Length: 6")...)
	f.wantSecret(400, "InvalidKey", "POST", "/upload/resumable", "", append(tus, metadata(""), "Upload-Length: 6")...)
}
