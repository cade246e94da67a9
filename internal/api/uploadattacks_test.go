package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// dial opens a connection to the server, for requests that net/http does not send.
func dial(t *testing.T, a *apitest.API) net.Conn {
	t.Helper()

	conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { conn.Close() })
	return conn
}

// answerOf reads one response and returns it with its body.
func answerOf(t *testing.T, from *bufio.Reader) (*http.Response, string) {
	t.Helper()

	res, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	return res, string(body)
}

// TestUploadsOfOneName checks that one of many concurrent uploads of a name succeeds, by any
// operation, and that the others leave nothing. UPLOADS raises their number.
func TestUploadsOfOneName(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	n := 30
	if text := os.Getenv("UPLOADS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}

	content := func(i int) string { return strings.Repeat(fmt.Sprintf("%04d", i), 1000) }
	counts := concurrently(n, func(i int) *apitest.Reply {
		switch i % 3 {
		case 0:
			return put(a, c, "same", content(i), "If-None-Match: *")
		case 1:
			u := tus(a, "POST", "/containers/"+c+"/tus", "", "Upload-Length: 4000",
				"Upload-Metadata: filename c2FtZQ==")
			if u.Status != 201 {
				return u
			}

			return patchTus(a, strings.TrimPrefix(u.Header.Get("Location"), a.URL), 0, content(i))
		}

		return upload(a, c, "same", content(i))
	})
	if won := counts[200] + counts[201] + counts[204]; won != 1 || won+counts[409]+counts[412] != n {
		t.Errorf("got %v, want one winner", counts)
	}

	a.Get("/containers/" + c + "/files").Want(200).Total(1)
	got := string(a.Get(address(a, c, "same")).Want(200).Body)
	if len(got) != 4000 || got != strings.Repeat(got[:4], 1000) {
		t.Errorf("got %d bytes, a mixture of several uploads", len(got))
	}

	execute(t, a, "update storage.resumable_uploads set expires_at = now() where file_uuid is null")

	if n := query[int](t, a, "select count(*) from storage.uploads"); n != 0 {
		t.Errorf("got %d uploads, want none", n)
	}

	checkCounts(t, a)
}

// TestWrongContentLength covers bodies that differ from their declared length. Bytes beyond it
// become neither part of the file nor a request.
func TestWrongContentLength(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "max_file_size": 1000000}`)
	head := func(name, more string) string {
		return "PUT " + address(a, c, name) + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + a.Token +
			"\r\nContent-Type: text/plain\r\n" + more + "\r\n"
	}

	// More bytes than declared: the rest is not part of the file, and no request.
	conn := dial(t, a)
	if _, err := io.WriteString(conn, head("short", "Content-Length: 4\r\n")+"half of it\r\n\r\n"); err != nil {
		t.Fatal(err)
	}

	from := bufio.NewReader(conn)
	if res, body := answerOf(t, from); res.StatusCode != 200 {
		t.Errorf("got %d %s", res.StatusCode, body)
	}

	if res, body := answerOf(t, from); res.StatusCode != 400 || !res.Close {
		t.Errorf("got %d %s, closed: %t", res.StatusCode, body, res.Close)
	}
	if got := a.Get(address(a, c, "short")).Want(200); string(got.Body) != "half" {
		t.Errorf("got content %q", got.Body)
	}

	for kind, headers := range map[string]string{
		"two lengths":             "Content-Length: 4\r\nContent-Length: 5\r\n",
		"a length below zero":     "Content-Length: -1\r\n",
		"no number":               "Content-Length: 0x4\r\n",
		"beyond all numbers":      "Content-Length: 99999999999999999999\r\n",
		"an encoding that is not": "Transfer-Encoding: gzip\r\n",
	} {
		conn := dial(t, a)
		if _, err := io.WriteString(conn, head("lie", headers)+"hello"); err != nil {
			t.Fatal(err)
		}

		if res, _ := answerOf(t, bufio.NewReader(conn)); (res.StatusCode != 400 && res.StatusCode != 501) ||
			!res.Close {
			t.Errorf("%s: got %d, closed: %t", kind, res.StatusCode, res.Close)
		}
	}

	// Ten gigabytes for a container with a limit of one megabyte: refused before the body, and the
	// connection is closed.
	conn = dial(t, a)
	if _, err := io.WriteString(conn, head("huge", "Content-Length: 10737418240\r\n")); err != nil {
		t.Fatal(err)
	}

	res, body := answerOf(t, bufio.NewReader(conn))
	var said struct{ Metadata struct{ Code string } }
	if err := json.Unmarshal([]byte(body), &said); err != nil || res.StatusCode != 413 ||
		said.Metadata.Code != "too_large" || !res.Close {
		t.Errorf("got %d %s, closed: %t", res.StatusCode, body, res.Close)
	}

	// Without a length, the response follows soon after the limit.
	sent := &infiniteReader{}
	a.Do(a.Request("PUT", address(a, c, "huge"), io.LimitReader(sent, 10<<30), "Content-Type: text/plain")).Want(413).
		Code("too_large")

	if sent.bytes.Load() > 100<<20 {
		t.Errorf("got %d bytes read of an oversized body", sent.bytes.Load())
	}

	put(a, c, "empty", "").Want(200).Content("size", 0)

	if got := a.Get(address(a, c, "empty")).Want(200); len(got.Body) != 0 || got.Header.Get("Content-Length") != "0" {
		t.Errorf("got %d bytes, %v", len(got.Body), got.Header)
	}

	wantFiles(t, a, 2)
	waitForBlobs(t, a, 2)
}

// infiniteReader is an infinite body that counts the bytes read.
type infiniteReader struct{ bytes atomic.Int64 }

func (e *infiniteReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}

	e.bytes.Add(int64(len(b)))
	return len(b), nil
}

// TestDeepNames checks the maximum depth of folders.
func TestDeepNames(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	deep := strings.Repeat("a/", 511) + "aa"
	bidi := "\u202e\u2066gpj.\u2069exe\u202c"
	for _, name := range []string{deep, bidi} {
		put(a, c, name, "x").Want(200).Content("fullFileName", name)
		got := a.Get(address(a, c, name)).Want(200)
		if disposition := got.Header.Get("Content-Disposition"); string(got.Body) != "x" ||
			strings.ContainsFunc(disposition, func(r rune) bool { return r > '~' || r < ' ' }) {
			t.Errorf("%q: got %q as %q", name, got.Body, disposition)
		}
	}

	for _, name := range []string{
		strings.Repeat("a/", 1000) + "a", strings.Repeat("n", 10_000), strings.Repeat("é", 10_000),
		"a/" + strings.Repeat("../", 300) + "etc/passwd", "a\x00.png",
	} {
		upload(a, c, name, "x").Want(422).Field("full_file_name")
	}

	names := values(a.Get("/containers/"+c+"/files?sort=fullFileName").Want(200), "fullFileName")
	if want := []string{deep, bidi}; !slices.Equal(names, want) {
		t.Errorf("got %d names, %.80q", len(names), names)
	}

	wantFiles(t, a, 2)
}

// TestStalledBodies checks that any number of stalled uploads and unfinished headers blocks no
// other client, since they hold no database connections.
func TestStalledBodies(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)

	var stalled []net.Conn
	for i := range 40 { // ten times the pool size
		conn := dial(t, a)
		if _, err := fmt.Fprintf(conn,
			"PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf", address(a, c, fmt.Sprint("f", i)), a.Token); err != nil {
			t.Fatal(err)
		}

		stalled = append(stalled, conn)
	}

	for range 200 {
		if _, err := io.WriteString(dial(t, a), "GET /containers HTTP/1.1\r\nHost: "); err != nil {
			t.Fatal(err)
		}
	}

	until(t, "all of them are running", func() bool {
		return query[int](t, a, "select count(*) from storage.uploads") == len(stalled)
	})

	put(a, c, "whole", "x").Want(200)
	a.Get("/containers/" + c + "/files").Want(200).Total(1)

	for _, conn := range stalled {
		conn.Close()
	}

	until(t, "they are removed completely", func() bool {
		return query[int](t, a, "select count(*) from storage.uploads") == 0
	})

	wantFiles(t, a, 1)
}
