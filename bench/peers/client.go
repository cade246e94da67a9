package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"time"
)

// api is the HTTP API of a product.
type api struct {
	url    string
	header http.Header // header of every request
}

// call sends a JSON body and parses the response into v; nil means no body, or no result.
func (a api) call(ctx context.Context, method, path string, body, v any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}

	r, err := a.request(method, path, text, "application/json")
	if err != nil {
		return err
	}

	return send(r.WithContext(ctx), v)
}

// send sends a request and parses the response into v, unless that is nil.
func send(r *http.Request, v any) error {
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s %s", r.Method, r.URL, res.Status, text)
	case v == nil:
		return nil
	}

	return json.Unmarshal(text, v)
}

// request returns a request with a body.
func (a api) request(method, path string, body []byte, contentType string) (*http.Request, error) {
	r, err := http.NewRequest(method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	r.Header = a.header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if body != nil {
		r.Header.Set("Content-Type", contentType)
	}

	return r, nil
}

// with returns the API with another header.
func (a api) with(name, value string) api {
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(name, value)

	return api{a.url, header}
}

// waitUntilReady waits until a path is served.
func (a api) waitUntilReady(ctx context.Context, path string) error {
	var err error
	for range 600 {
		if err = a.call(ctx, "GET", path, nil, nil); err == nil || ctx.Err() != nil {
			return err
		}

		time.Sleep(100 * time.Millisecond)
	}

	return err
}

// Bytes of uploads, which do not compress.
var small, large = random(10 << 10), random(1 << 20)

func random(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b) // never fails

	return b
}

// form returns a multipart body with a file and its content type.
func form(field string, content []byte) (body []byte, contentType string, err error) {
	var b bytes.Buffer
	b.Grow(len(content) + 1<<10)

	w := multipart.NewWriter(&b)
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename="file.bin"`, field)},
		"Content-Type":        {"application/octet-stream"},
	})
	if err != nil {
		return nil, "", err
	}

	_, _ = part.Write(content) // a buffer never fails
	_ = w.Close()

	return b.Bytes(), w.FormDataContentType(), nil
}
