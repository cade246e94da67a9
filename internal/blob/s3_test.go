package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/fault"
)

// large returns the content of an upload of two parts.
func large() []byte { return random(partSize + 12345) }

// random returns the same bytes at each call.
func random(size int) []byte {
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(content)

	return content
}

func TestParts(t *testing.T) {
	t.Parallel()

	s, service := openService(t)
	three := random(2*partSize + 12345)
	for key, content := range map[string][]byte{
		"three": three, "one": three[:partSize], "two": three[:partSize+1],
	} {
		got, err := s.Put(t.Context(), key, iotest.HalfReader(bytes.NewReader(content)), int64(len(content)))
		if err != nil || got.Size != int64(len(content)) {
			t.Fatalf("Put(%s) = %d, %v, want %d", key, got.Size, err, len(content))
		}
		if get(t, s, key) != string(content) {
			t.Errorf("Open(%s): content differs from the stored bytes", key)
		}
		if _, err := s.Put(t.Context(), key, bytes.NewReader(content), noLimit); !fault.Is(err, fault.Conflict) {
			t.Errorf("Put(%s) again = %v, want Conflict", key, err)
		}
	}

	wantFiles(t, bucketFiles(service), "one", "three", "two")
}

func TestPartsLeaveNothing(t *testing.T) {
	t.Parallel()

	errLost := errors.New("connection lost")
	ctx, cancel := context.WithCancel(t.Context())
	for name, tt := range map[string]struct {
		ctx context.Context
		r   io.Reader
		max int64
		ok  func(error) bool
	}{
		"too large":   {t.Context(), bytes.NewReader(large()), partSize, isTooLarge},
		"without end": {t.Context(), endless{}, 2 * partSize, isTooLarge},
		"reader fails": {t.Context(), io.MultiReader(bytes.NewReader(large()), iotest.ErrReader(errLost)),
			noLimit, isError(errLost)},
		"cancelled": {ctx, io.MultiReader(bytes.NewReader(large()), readerFunc(func([]byte) (int, error) {
			cancel()
			return 0, nil
		})), noLimit, isError(context.Canceled)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, service := openService(t)
			if _, err := s.Put(tt.ctx, "a/b", tt.r, tt.max); !tt.ok(err) {
				t.Errorf("Put = %v", err)
			}

			wantFiles(t, bucketFiles(service))
		})
	}
}

// isComplete and isPut recognize the requests that create an object.
func isComplete(r *http.Request) bool { return r.Method == "POST" && r.URL.Query().Has("uploadId") }
func isPut(r *http.Request) bool      { return r.Method == "PUT" && !r.URL.Query().Has("partNumber") }

func answer(status int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(status)
		return true
	}
}

// neverAnswer waits until the client gives up.
func neverAnswer(_ http.ResponseWriter, r *http.Request) bool {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()

	return true
}

// cutOff closes the connection instead of responding.
func cutOff(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

// TestServiceFails lets every request fail and checks the errors.
func TestServiceFails(t *testing.T) {
	t.Parallel()

	for name, fail := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"500": answer(500), "503": answer(503), "403": answer(403), "never": neverAnswer,
		"cut off": cutOff, "301": answer(301),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			service := blobtest.New(t)
			var c config.Config
			service.Configure(&c)

			s := openConfigured(t, c)
			b := s.backend.(*bucket)
			timeout := b.timeout
			put(t, s, "there", "there")

			r, _, err := s.Open(t.Context(), "there")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()

			service.OnRequest(fail)
			b.timeout = 300 * time.Millisecond // requests that should succeed have longer
			_, putErr := s.Put(t.Context(), "a", strings.NewReader("x"), noLimit)
			_, partsErr := s.Put(t.Context(), "a", bytes.NewReader(large()), noLimit)
			_, _, openErr := s.Open(t.Context(), "there")
			_, readErr := io.ReadAll(r)
			_, sweepErr := s.Sweep(t.Context(), 0)

			var listErr error
			for _, listErr = range s.List(t.Context(), "a") {
			}

			for op, err := range map[string]error{"Put": putErr, "Put of parts": partsErr, "Open": openErr,
				"Read": readErr, "Sweep": sweepErr, "List": listErr, "Delete": s.Delete(t.Context(), "there"),
				"DeleteAll": s.DeleteAll(t.Context(), "there"), "Check": s.Check(t.Context())} {
				if !fault.Is(err, fault.Unavailable) {
					t.Errorf("%s = %v, want Unavailable", op, err)
				}
			}

			service.OnRequest(nil)
			b.timeout = timeout
			wantFiles(t, bucketFiles(service), "there")
			put(t, s, "a", "now")
		})
	}
}

// TestCompleteFails accepts all parts and fails to complete the upload.
func TestCompleteFails(t *testing.T) {
	t.Parallel()

	s, service := openService(t)
	service.OnRequest(func(w http.ResponseWriter, r *http.Request) bool { return isComplete(r) && answer(500)(w, r) })

	if _, err := s.Put(t.Context(), "a", bytes.NewReader(large()), noLimit); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Put = %v, want Unavailable", err)
	}

	wantFiles(t, bucketFiles(service))
}

// TestServiceRecovers lets the first request of each kind fail.
func TestServiceRecovers(t *testing.T) {
	t.Parallel()

	s, service := openService(t)
	var last atomic.Value
	last.Store("")

	service.OnRequest(func(w http.ResponseWriter, r *http.Request) bool {
		io.Copy(io.Discard, r.Body)

		if this := r.Method + r.URL.String(); last.Swap(this) != this {
			return answer(503)(w, r)
		}

		return false
	})

	if _, err := s.Put(t.Context(), "a", http.NoBody, noLimit); err != nil {
		t.Errorf("Put = %v", err)
	}

	if got := get(t, s, "a"); got != "" {
		t.Errorf("Open has %q, want no bytes", got)
	}

	wantFiles(t, bucketFiles(service), "a")
}

// TestLostResponse checks that Put succeeds if the object was created but the response was lost.
func TestLostResponse(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		content []byte
		last    func(*http.Request) bool
	}{"whole": {[]byte("hello"), isPut}, "in parts": {large(), isComplete}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, service := openService(t)
			var lost atomic.Bool
			service.DropResponses(func(r *http.Request) bool { return tt.last(r) && lost.CompareAndSwap(false, true) })

			got, err := s.Put(t.Context(), "a", bytes.NewReader(tt.content), noLimit)
			if err != nil || got.Size != int64(len(tt.content)) || !lost.Load() {
				t.Errorf("Put = %d, %v, want it to succeed", got.Size, err)
			}
			if get(t, s, "a") != string(tt.content) {
				t.Error("Open: content differs from the stored bytes")
			}

			wantFiles(t, bucketFiles(service), "a")
		})
	}
}

// TestCanceledAfterPut cancels the context after the object was created.
func TestCanceledAfterPut(t *testing.T) {
	t.Parallel()

	s, service := openService(t)
	ctx, cancel := context.WithCancel(t.Context())
	service.DropResponses(func(r *http.Request) bool {
		if isPut(r) {
			cancel()
		}
		return isPut(r)
	})

	if _, err := s.Put(ctx, "a", strings.NewReader("hello"), noLimit); !errors.Is(err, context.Canceled) {
		t.Errorf("Put = %v, want %v", err, context.Canceled)
	}

	wantFiles(t, bucketFiles(service))
}

// TestInterruptedBody truncates every response: the reader resumes at the same offset.
func TestInterruptedBody(t *testing.T) {
	t.Parallel()

	s, service := openService(t)
	content := string(random(1 << 20))
	put(t, s, "a", content)
	gets := 0

	service.TruncateResponses(300_000, func(r *http.Request) bool {
		if r.Method == "GET" {
			gets++
		}
		return r.Method == "GET"
	})

	if get(t, s, "a") != content {
		t.Error("Open: content differs from the stored bytes")
	}
	if gets < 4 {
		t.Errorf("got %d requests, want 4 or more", gets)
	}
}

func TestAbsentService(t *testing.T) {
	t.Parallel()

	gone := httptest.NewServer(nil)
	gone.Close()

	for _, change := range [][2]string{
		{"s3://blobs", "s3://others"}, {"endpoint=", "endpoint=" + url.QueryEscape(gone.URL) + "&was="},
	} {
		var c config.Config
		blobtest.New(t).Configure(&c)
		c.StorageURL = strings.Replace(c.StorageURL, change[0], change[1], 1)
		c.StorageURL, _, _ = strings.Cut(c.StorageURL, "&was=")

		s := openConfigured(t, c)
		s.backend.(*bucket).timeout = 300 * time.Millisecond
		if _, err := s.Put(t.Context(), "a", strings.NewReader("x"), noLimit); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Put = %v, want Unavailable", err)
		}
		if _, err := s.Put(t.Context(), "a", bytes.NewReader(large()), noLimit); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Put of parts = %v, want Unavailable", err)
		}
		if err := s.Check(t.Context()); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Check = %v, want Unavailable", err)
		}
	}
}

// TestSweepParts aborts an interrupted multipart upload and nothing else.
func TestSweepParts(t *testing.T) {
	t.Parallel()

	s, service := openService(t)
	put(t, s, "kept", "kept")

	unfinished := &upload{bucket: s.backend.(*bucket), key: s.backend.(*bucket).key("cut/off")}
	if err := errors.Join(
		unfinished.begin(t.Context()), unfinished.putPart(t.Context(), random(1<<20)),
	); err != nil {
		t.Fatal(err)
	}

	if n, err := s.Sweep(t.Context(), time.Minute); n != 0 || err != nil {
		t.Errorf("Sweep of a recent upload = %d, %v, want 0", n, err)
	}
	if n, err := s.Sweep(t.Context(), -time.Minute); n != 1 || err != nil {
		t.Errorf("Sweep = %d, %v, want 1", n, err)
	}

	wantFiles(t, bucketFiles(service), "kept")
	if err := unfinished.complete(t.Context()); err == nil {
		t.Error("an aborted upload was completed")
	}
}

func TestReadPart(t *testing.T) {
	t.Parallel()

	for _, size := range []int{
		0, 1, minPartBuffer - 1, minPartBuffer, minPartBuffer + 1, 3 * minPartBuffer, 3*minPartBuffer + 1,
	} {
		part, last, err := readPart(iotest.HalfReader(bytes.NewReader(make([]byte, size))), nil, 3*minPartBuffer)
		if want := min(size, 3*minPartBuffer); len(part) != want || cap(part) > 3*minPartBuffer ||
			last != (size < 3*minPartBuffer) || err != nil {
			t.Errorf("readPart of %d = %d of %d, %v, %v", size, len(part), cap(part), last, err)
		}
	}
}

// TestCloseDuringRead closes a reader during a read: the read fails and sends no further request.
func TestCloseDuringRead(t *testing.T) {
	t.Parallel()

	s, service := openService(t)
	if _, err := s.Put(t.Context(), "a", strings.NewReader("0123456789"), noLimit); err != nil {
		t.Fatal(err)
	}

	var requests atomic.Int32
	service.OnRequest(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}

		requests.Add(1)
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "0")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()

		return true
	})

	r, _, err := s.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}

	if n, err := r.Read(make([]byte, 10)); n != 1 || err != nil {
		t.Fatalf("Read = %d, %v, want 1", n, err)
	}

	readErr := make(chan error)
	go func() {
		_, err := r.Read(make([]byte, 10))
		readErr <- err
	}()

	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := <-readErr; err == nil {
		t.Error("Read after Close succeeded, want an error")
	}

	if n := requests.Load(); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestIgnoredRanges reads the end of a blob through a service or proxy that ignores ranges.
func TestIgnoredRanges(t *testing.T) {
	t.Parallel()

	s, service := openService(t)
	if _, err := s.Put(t.Context(), "a", strings.NewReader("0123456789"), noLimit); err != nil {
		t.Fatal(err)
	}

	service.OnRequest(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, "0123456789")
		}
		return r.Method == http.MethodGet
	})

	if got := get(t, s, "a"); got != "0123456789" {
		t.Errorf("got %q, want 0123456789", got)
	}

	r, _, err := s.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()

	if _, err := r.Seek(5, io.SeekStart); err != nil {
		t.Fatal(err)
	}

	if got, err := io.ReadAll(r); !fault.Is(err, fault.Unavailable) {
		t.Errorf("read from byte 5: got %q, %v, want Unavailable", got, err)
	}
}
