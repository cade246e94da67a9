package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"mime/multipart"
	"net/http"

	"github.com/google/uuid"
)

const (
	small  = 10 << 10
	large  = 1 << 20
	listed = 30 // objects in the folder of each user
)

// request returns request n.
type request func(b *bench, n int) (*http.Request, error)

// operation is a measured operation, by each API and in the bare server.
type operation struct {
	name              string
	storage, platform request
	limit             func(b *bench, url string, n int) (*http.Request, error)
}

var operations = []operation{
	upload("upload of 10 KiB", small),
	upload("upload of 1 MiB", large),
	{"download of 1 MiB", func(b *bench, n int) (*http.Request, error) {
		return b.request("GET", b.project+"/storage/v1/object/letters/"+b.user(n).object(0), b.user(n).token, nil)
	}, func(b *bench, n int) (*http.Request, error) {
		return b.request("GET", b.files+b.user(n).object(0), b.token, nil)
	}, func(b *bench, url string, _ int) (*http.Request, error) {
		return http.NewRequest("GET", url+"/download/file", nil)
	}},
	{"list of 30", func(b *bench, n int) (*http.Request, error) {
		return b.request("POST", b.project+"/storage/v1/object/list/letters", b.user(n).token,
			fmt.Appendf(nil, `{"prefix":%q,"limit":100}`, b.user(n).id))
	}, func(b *bench, _ int) (*http.Request, error) {
		return b.request("GET", "/containers/"+b.Container+"/files?limit=30", b.token, nil)
	}, func(b *bench, url string, n int) (*http.Request, error) {
		return http.NewRequest("GET", url+"/list/"+b.user(n).id, nil)
	}},
}

// upload returns the operation that stores an object of a size in bytes in the folder of a user.
func upload(name string, size int) operation {
	content := make([]byte, size)
	_, _ = rand.Read(content) // never fails

	return operation{name, func(b *bench, n int) (*http.Request, error) {
		return b.request("POST", b.project+"/storage/v1/object/letters/"+b.user(n).id+"/new/"+uuid.NewString(),
			b.user(n).token, content)
	}, func(b *bench, n int) (*http.Request, error) {
		contentType, body := form(b.user(n).id+"/new/"+uuid.NewString(), content)
		q, err := b.request("POST", "/containers/"+b.Container+"/files", b.token, body)
		if err == nil {
			q.Header.Set("Content-Type", contentType)
		}

		return q, err
	}, func(b *bench, url string, n int) (*http.Request, error) {
		return http.NewRequest("POST", url+"/upload/"+b.user(n).id, bytes.NewReader(content))
	}}
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

// object returns the name of the user's object i.
func (u user) object(i int) string { return fmt.Sprintf("%s/%d", u.id, i) }

// user returns the user of request n.
func (b *bench) user(n int) user { return b.users[n%len(b.users)] }

func (b *bench) request(method, path, token string, body []byte) (*http.Request, error) {
	q, err := http.NewRequest(method, b.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("X-Project", b.Project)
	q.Header.Set("Content-Type", "application/octet-stream")
	if len(body) > 0 && body[0] == '{' {
		q.Header.Set("Content-Type", "application/json")
	}

	return q, nil
}
