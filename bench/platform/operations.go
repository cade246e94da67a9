package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"strings"
)

const (
	containers = 16 // that are changed in turn
	listed     = 30 // files of the container that is listed, and tables
	small      = 10 << 10
	large      = 1 << 20

	email    = "bench@example.com"
	password = "correct horse battery"
)

// operation is a measured operation: its request n to Socle, and its handler in the bare server.
type operation struct {
	name, method string
	fill         func(b *bench, n int) (path, contentType string, body []byte)
	limit        func(s *bareServer) http.HandlerFunc
	most         float64 // ratio of the processor time of the server and PostgreSQL
}

var operations = []operation{
	{"who am I", "GET", plain("/users/me"), (*bareServer).whoAmI, 2},
	{"list projects", "GET", plain("/projects"), (*bareServer).listProjects, 2},
	{"get container", "GET", func(b *bench, n int) (string, string, []byte) {
		return "/containers/" + b.Containers[n%containers], "", nil
	}, (*bareServer).getContainer, 2},
	{"list files", "GET", func(b *bench, _ int) (string, string, []byte) {
		return "/containers/" + b.Listed + "/files", "", nil
	}, (*bareServer).listFiles, 2},
	{"list tables", "GET", plain("/tables"), (*bareServer).listTables, 2.5},
	{"update container", "PUT", func(b *bench, n int) (string, string, []byte) {
		return "/containers/" + b.Containers[n%containers], "application/json",
			fmt.Appendf(nil, `{"description":"change %d"}`, n)
	}, (*bareServer).updateContainer, 2},
	{"form response", "POST", func(b *bench, n int) (string, string, []byte) {
		return "/forms/" + b.Form + "/responses", "application/json",
			fmt.Appendf(nil, `{"answers":{"name":"client %d","score":%d,"text":"a few words"}}`, n, n%10)
	}, (*bareServer).createResponse, 2},
	{"upload of 10 KiB", "POST", upload(small), (*bareServer).upload, 2.86},
	{"upload of 1 MiB", "POST", upload(large), (*bareServer).upload, 2},
	{"download of 1 MiB", "GET", download, (*bareServer).download, 2},
	{"authorized download", "GET", download, (*bareServer).authorizedDownload, 2},
	{"log-in", "POST", func(*bench, int) (string, string, []byte) {
		return "/users/login", "application/json", fmt.Appendf(nil, `{"email":%q,"password":%q}`, email, password)
	}, (*bareServer).login, 2},
}

// download fills a request for the bytes of a file.
func download(b *bench, _ int) (path, contentType string, body []byte) {
	return "/containers/" + b.Listed + "/files/" + b.File + "/download", "", nil
}

// plain returns the fill of a request without a body.
func plain(path string) func(*bench, int) (string, string, []byte) {
	return func(*bench, int) (string, string, []byte) { return path, "", nil }
}

// upload returns the fill of an upload of a size in bytes.
func upload(size int) func(*bench, int) (string, string, []byte) {
	content := randomBytes(size)
	return func(b *bench, n int) (string, string, []byte) {
		contentType, body := form(fmt.Sprintf("folder %d/%d-%d", n%100, rand.Uint64(), n), content)
		return "/containers/" + b.Uploads + "/files", contentType, body
	}
}

// form returns a multipart body with a file.
func form(name string, content []byte) (contentType string, body []byte) {
	var b bytes.Buffer
	b.Grow(len(content) + 1<<10)

	w := multipart.NewWriter(&b)
	_ = w.WriteField("full_file_name", name) // a buffer never fails
	part, _ := w.CreateFormFile("file", "file.bin")
	_, _ = part.Write(content)
	_ = w.Close()

	return w.FormDataContentType(), b.Bytes()
}

func randomBytes(n int) []byte {
	seed := rand.NewChaCha8([32]byte{})
	b := make([]byte, n)
	_, _ = seed.Read(b) // never fails

	return b
}

// request returns request n of an operation to Socle.
func (b *bench) request(o operation, n int) (*http.Request, error) {
	path, contentType, body := o.fill(b, n)
	q, err := http.NewRequest(o.method, b.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	if o.name != "log-in" {
		q.Header.Set("Authorization", "Bearer "+b.token)
	}
	if !strings.HasPrefix(path, "/users") && !strings.HasPrefix(path, "/projects") {
		q.Header.Set("X-Project", b.Project)
	}
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}

	return q, nil
}

// limitRequest returns request n of an operation to the bare server.
func (b *bench) limitRequest(url string, o operation, n int) (*http.Request, error) {
	q, err := b.request(o, n)
	if err != nil {
		return nil, err
	}

	path := fmt.Sprintf("/%s/%d", strings.ReplaceAll(o.name, " ", "-"), n)
	if o.name == "download of 1 MiB" {
		path = "/" + strings.ReplaceAll(o.name, " ", "-") + "/file"
	}

	q.URL, err = q.URL.Parse(url + path)
	q.Host = q.URL.Host

	return q, err
}
