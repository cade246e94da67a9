package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	for _, tt := range []struct {
		method, path string
		want         int
		code         string
	}{
		{"GET", "/", 404, "unknown_route"},
		{"GET", "/nothing", 404, "unknown_route"},
		{"GET", "/USERS", 404, "unknown_route"},
		{"POST", "/users/", 404, "unknown_route"},
		{"POST", "/users;x", 404, "unknown_route"},
		{"GET", "/projects/" + apitest.MissingUUID + "/nothing", 404, "unknown_route"},
		{"GET", "/files/" + apitest.MissingUUID + "/" + apitest.MissingUUID, 404, "unknown_route"},
		{"DELETE", "/users", 405, "method_not_allowed"},
		{"PATCH", "/users/" + apitest.MissingUUID, 405, "method_not_allowed"},
		{"TRACE", "/users", 405, "method_not_allowed"},
		{"OPTIONS", "/users", 405, "method_not_allowed"},
		{"POST", "/healthz", 405, "method_not_allowed"},
		{"POST", "//users", 400, "invalid_path"},
		{"GET", "//evil.example/..", 400, "invalid_path"},
		{"GET", "/%2f%2fevil.example", 400, "invalid_path"},
		{"GET", "/%5cevil.example", 400, "invalid_path"},
		{"POST", "/users/../users", 400, "invalid_path"},
		{"POST", "/users/./login", 400, "invalid_path"},
		{"POST", "/tables//columns", 400, "invalid_path"},
		{"DELETE", "/functions/%2e%2e/now", 400, "invalid_path"},
	} {
		r := a.Send(tt.method, tt.path, "").Want(tt.want).Code(tt.code)
		if r.Status == 405 && r.Header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow header", tt.method, tt.path)
		}
		if string(r.Body) != strings.TrimSpace(string(r.Body))+"\n" || r.Get("") != "null" {
			t.Errorf("%s %s: not an envelope: %s", tt.method, tt.path, r.Body)
		}
	}

	// Override headers do not change the route.
	a.Send("POST", "/projects", `{}`, "X-HTTP-Method-Override: DELETE").Want(422)
	a.Send("GET", "/nothing", "", "X-Original-URL: /projects").Want(404)
}

func TestMalformedBodies(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "canary"}`)
	path := "/containers/" + c
	for _, body := range []string{
		"", "null", "[]", `"x"`, "1", "{", `{"name":"other"`, `{"name":"other"}x`, `{"name":"other"}{}`,
		`{"name":"other","name":"third"}`, `{'name':'other'}`, `{"name":NaN}`, "\ufeff{}", "{\"name\":\"\xff\"}",
		`{"name":"\ud800"}`, "name=other", `{"name":"other",}`, "// x\n{}", "{\x00}", strings.Repeat("[", 10_001),
		`{"name":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		a.Put(path, body).Want(400)
	}

	for _, contentType := range []string{
		"text/plain", "multipart/form-data; boundary=x", "", "application/json; charset=utf-16",
		"application/xml", ";;",
	} {
		a.Send("PUT", path, `{"name":"other"}`, "Content-Type:"+contentType).Want(400).Field("Content-Type")
	}

	a.Send("PUT", path, `{"name":"other"}`, "Content-Encoding: gzip").Want(400).Field("Content-Encoding")
	a.Put(path, `{"description":"still the canary"}`).Want(200).Content("name", "canary")

	// The default Content-Type of curl is accepted.
	a.Send("PUT", path, `{"description":"by curl"}`, "Content-Type: application/x-www-form-urlencoded").Want(200)
	a.Send("PUT", path, `{"description":"by curl"}`, "Content-Type: application/json; charset=UTF-8").Want(200)
}

// TestLargeBodiesAreNotRead checks that an oversized body is refused before it arrives if its
// length is declared, and soon after the limit otherwise.
func TestLargeBodiesAreNotRead(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	declared := a.Request("POST", "/users", io.LimitReader(zeros{}, 100<<20))
	declared.ContentLength = 100 << 20

	res, err := http.DefaultTransport.RoundTrip(declared)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	if res.StatusCode != 400 {
		t.Errorf("got %d, want 400", res.StatusCode)
	}

	chunked := a.Request("POST", "/users", io.LimitReader(zeros{}, 2<<20))
	chunked.ContentLength = -1
	a.Do(chunked).Want(400).Code("too_large")
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

// TestAmbiguousHTTP sends requests that two servers could parse differently. Each gets a single
// error response.
func TestAmbiguousHTTP(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t)
	address := strings.TrimPrefix(a.URL, "http://")
	head := "POST /users HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	for name, request := range map[string]string{
		"length and chunked": head +
			"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"two lengths":            head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
		"bad chunk":              head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"space before the colon": head + "Content-Length : 2\r\n\r\n{}",
		"two hosts":              "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"no host":                "GET /healthz HTTP/1.1\r\n\r\n",
		"unknown version":        "GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
		"chunked in HTTP/1.0": "POST /users HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"bare LF":        "GET /healthz HTTP/1.1\r\nHost: x\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"folded header":  head + "Content-Length: 2\r\nX: a\r\n b\r\n\r\n{}",
		"unknown coding": head + "Transfer-Encoding: gzip\r\n\r\n{}",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		_ = conn.SetDeadline(time.Now().Add(time.Minute))

		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}

		answers := bufio.NewReader(conn)
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Errorf("%s: no response: %v", name, err)
			continue
		}

		_, _ = io.Copy(io.Discard, res.Body)

		if res.StatusCode < 400 || res.StatusCode > 505 || res.StatusCode == 500 {
			t.Errorf("%s: got %d", name, res.StatusCode)
		}

		if second, err := http.ReadResponse(answers, nil); err == nil {
			t.Errorf("%s: got a second response: %d", name, second.StatusCode)
		}
	}
}
