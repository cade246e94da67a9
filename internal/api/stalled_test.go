package api_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// busyConnections returns the number of non-idle connections to the project's database and the
// platform database. It leaves out the watchdog, which is never idle.
func busyConnections(t *testing.T, a *apitest.API) int {
	t.Helper()

	const sql = `select count(*)::int from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' and state <> 'idle'
		and application_name <> 'socle watchdog'`
	return query[int](t, a, sql) + apitest.Value[int](a, sql)
}

// TestStalledReaders checks that clients that stop reading large files hold no database connections
// and no memory, and block no other client.
func TestStalledReaders(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	c := a.Create("/containers", `{"name": "large", "is_public": true}`)

	const readers, size, tolerance = 100, 16 << 20, 400 << 20
	put(a, c, "large", strings.Repeat("x", size)).Want(200)

	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	transport := &http.Transport{DisableKeepAlives: true}
	for range readers {
		res, err := transport.RoundTrip(a.Request("GET", address(a, c, "large"), nil))
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { res.Body.Close() })
		if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}

	until(t, "no database connection is in use", func() bool { return busyConnections(t, a) == 0 })
	runtime.GC()
	runtime.ReadMemStats(&during)

	// The tolerance covers other tests running in parallel.
	if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > tolerance {
		t.Errorf("%d readers of %d MiB take %d MiB of memory", readers, size>>20, grown>>20)
	}

	res, err := transport.RoundTrip(a.Request("GET", address(a, c, "large"), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
		t.Errorf("another reader: got %d bytes, %v", n, err)
	}

	put(a, c, "small", "x").Want(200)
}

// stallingConn is a connection whose client sends the beginning of a body and then stalls. Instead
// of waiting for the read deadline, it records the time that a read would wait.
type stallingConn struct {
	http.ResponseWriter
	*bytes.Reader
	until  time.Time
	waited time.Duration // 0: no wait; negative: no deadline
}

func (s *stallingConn) SetReadDeadline(until time.Time) error { s.until = until; return nil }
func (s *stallingConn) SetWriteDeadline(time.Time) error      { return nil }
func (s *stallingConn) Close() error                          { return nil }
func (s *stallingConn) Read(b []byte) (int, error) {
	if n, err := s.Reader.Read(b); err == nil {
		return n, nil
	}

	if s.waited = -1; !s.until.IsZero() {
		s.waited = time.Until(s.until)
	}

	return 0, os.ErrDeadlineExceeded
}

// TestStalledBodiesEnd checks that every operation with a body waits for it for a bounded time, and
// leaves nothing behind.
func TestStalledBodiesEnd(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	a.CreateTable("orders")

	multipart := "multipart/form-data; boundary=" + boundary
	form := a.Create("/forms", `{"name": "Survey"}`)
	a.Put("/forms/"+form, `{"state": "open"}`).Want(200)

	stall := func(method, path, media, start string, status int) {
		t.Helper()

		request := a.Request(method, path, nil, "Content-Type: "+media, "Tus-Resumable: 1.0.0", "Upload-Offset: 0")
		request = request.WithContext(t.Context())
		request.ContentLength = 10_000

		answer := httptest.NewRecorder()
		s := &stallingConn{ResponseWriter: answer, Reader: bytes.NewReader([]byte(start))}
		request.Body = s
		request.RequestURI = request.URL.RequestURI()
		a.Server.Handler().ServeHTTP(s, request)
		a.ReadReply(request, answer.Result()).Want(status)

		if s.waited <= 0 || s.waited > time.Minute {
			t.Errorf("%s %s: got %d after %v, want a refusal within a minute: %s", method, path, answer.Code,
				s.waited, answer.Body)
		}
	}

	for _, r := range []struct {
		method, path, media, start string
		status                     int
	}{
		{"POST", "/forms", "application/json", `{"name": "Sur`, 400},
		{"POST", "/users/login", "application/json", `{`, 400},
		{"POST", "/containers/" + c + "/files", multipart, multipartOf("a.txt", "hello")[:200], 408},
		{"PUT", address(a, c, "b.txt"), "text/plain", "hello", 408},
		{"POST", "/tables/import", "text/csv", "id\n1\n", 408},
		{"POST", "/tables/orders/import", "text/csv", "id\n1\n", 408},
		{"POST", "/backups/import", "application/octet-stream", "hello", 408},
		{"POST", "/forms/" + form + "/responses", multipart, multipartOf("a.txt", "hello")[:len("--"+boundary)], 408},
	} {
		stall(r.method, r.path, r.media, r.start, r.status)
	}

	until(t, "nothing is left", func() bool {
		return busyConnections(t, a) == 0 && query[int](t, a, "select count(*) from storage.uploads") == 0 &&
			query[int](t, a, "select count(*) from storage.files") == 0
	})

	if remaining := blobs(t, a); len(remaining) > 0 {
		t.Errorf("got remaining blobs %v", remaining)
	}

	// The bytes of a resumable upload are kept, so that the client can resume.
	start := a.Send("POST", "/containers/"+c+"/tus", "", "Tus-Resumable: 1.0.0", "Upload-Length: 10000",
		"Upload-Metadata: filename YS50eHQ=").Want(201)
	resumed := strings.TrimPrefix(start.Header.Get("Location"), a.URL)
	stall("PATCH", resumed, "application/offset+octet-stream", "hello", 408)

	if got := a.Send("HEAD", resumed, "", "Tus-Resumable: 1.0.0").Want(200).Header.Get("Upload-Offset"); got != "5" {
		t.Errorf("got offset %q, want 5", got)
	}
}
