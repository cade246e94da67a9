// Package blobtest runs an S3 service for tests, which can also inject failures.
package blobtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/socle-dev/socle/internal/config"
)

// program is the S3 service, built by make s3, see tools/s3.
const program = "bin/s3"

const (
	accessKey = "access"
	secretKey = "secret-of-the-test"
)

// service is this test binary's S3 program. It serves all tests, each with a separate bucket.
type service struct {
	dir    string // buckets, a folder each
	socket string
	input  io.Closer // open as long as the program runs
}

var (
	startOnce = sync.OnceValues(start)
	buckets   atomic.Int64 // numbers the buckets
)

// S3 is a running service with an empty bucket.
type S3 struct {
	StorageURL string // for SOCLE_STORAGE_URL
	Bucket     string // bucket name
	Dir        string // object folder, each object in a file named after its key
	onRequest  atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	lost       atomic.Pointer[lostResponse]
}

// lostResponse describes which responses are lost.
type lostResponse struct {
	match func(*http.Request) bool
	bytes int // bytes that arrive from the body; -1: no response at all
}

// New returns a service with an empty bucket that is removed at the end of the test.
func New(t testing.TB) *S3 {
	t.Helper()

	program, err := startOnce()
	if err != nil {
		t.Fatal(err)
	}

	bucket := fmt.Sprint("blobs-", buckets.Add(1))
	s := &S3{Bucket: bucket, Dir: filepath.Join(program.dir, bucket)}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { os.RemoveAll(s.Dir) })

	proxy := &httputil.ReverseProxy{
		ModifyResponse: s.dropResponse,
		ErrorLog:       log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { // the signature covers the host
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "s3", r.In.Host
		},
		Transport: &http.Transport{DisableCompression: true, DialContext: func(
			ctx context.Context, _, _ string,
		) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", program.socket)
		}},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, errLost) {
				panic(http.ErrAbortHandler)
			}

			if r.Context().Err() == nil {
				t.Logf("S3: %s %s: %v", r.Method, r.URL.Path, err)
			}

			w.WriteHeader(http.StatusBadGateway)
		},
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fail := s.onRequest.Load(); fail == nil || !(*fail)(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))

	t.Cleanup(server.Close)
	s.StorageURL = "s3://" + bucket + "/some/prefix?" + url.Values{"endpoint": {server.URL}, "timeout": {"5s"}}.Encode()

	return s
}

// findGateway returns the program's path. A test runs in the package's folder.
func findGateway() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}

	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			path := filepath.Join(dir, program)
			if _, err := os.Stat(path); err != nil {
				return "", fmt.Errorf("%w: run make s3 to build it", err)
			}

			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the test does not run in the source tree")
		}
		dir = filepath.Dir(dir)
	}
}

// lifetime runs the program until its input closes, which happens when the test process ends in
// whatever way, and removes the folder.
const lifetime = `"$@" & cat >/dev/null; kill -9 $!; wait; rm -rf "$0"`

// start starts the program and waits until it accepts connections.
func start() (*service, error) {
	path, err := findGateway()
	if err != nil {
		return nil, err
	}

	dir, err := os.MkdirTemp("", "s3-") // the path of a socket must be short
	if err != nil {
		return nil, err
	}

	s := &service{dir: filepath.Join(dir, "buckets"), socket: filepath.Join(dir, "socket")}
	metadata := filepath.Join(dir, "metadata")
	for _, name := range []string{s.dir, metadata} {
		if err := os.Mkdir(name, 0o700); err != nil {
			return nil, err
		}
	}

	cmd := exec.Command("sh", "-c", lifetime, dir, path, s.socket, metadata, s.dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey}
	cmd.Stderr = os.Stderr

	if s.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}

	return s, s.await()
}

// await waits until the program accepts connections.
func (s *service) await() error {
	tick, deadline := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()

	for {
		conn, err := net.Dial("unix", s.socket)
		if err == nil {
			return conn.Close()
		}

		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("the S3 service does not accept connections: %w", err)
		}
	}
}

// Configure makes a configuration use the service as storage.
func (s *S3) Configure(c *config.Config) {
	c.StorageURL, c.S3AccessKey, c.S3SecretKey = s.StorageURL, accessKey, secretKey
}

// ConfigureShortTimeout is [S3.Configure] with a short timeout, which still suffices on a busy
// machine.
func (s *S3) ConfigureShortTimeout(c *config.Config) {
	s.Configure(c)
	c.StorageURL = strings.Replace(c.StorageURL, "timeout=5s", "timeout=2s", 1)
}

// OnRequest passes requests to f, which responds and returns true, or returns false to forward
// them. nil removes f.
func (s *S3) OnRequest(f func(http.ResponseWriter, *http.Request) bool) {
	if f == nil {
		s.onRequest.Store(nil)
		return
	}

	s.onRequest.Store(&f)
}

// DropResponses drops the responses to requests for which match returns true: the request succeeds,
// then the connection is closed.
func (s *S3) DropResponses(match func(*http.Request) bool) { s.lost.Store(&lostResponse{match, -1}) }

// TruncateResponses truncates the bodies in such responses after a number of bytes, some of which
// may be lost. Shorter bodies arrive whole.
func (s *S3) TruncateResponses(bytes int, match func(*http.Request) bool) {
	s.lost.Store(&lostResponse{match, bytes})
}

var errLost = errors.New("response dropped")

func (s *S3) dropResponse(r *http.Response) error {
	l := s.lost.Load()
	if l == nil || !l.match(r.Request) {
		return nil
	}
	if l.bytes < 0 {
		return errLost
	}
	if r.ContentLength >= 0 && r.ContentLength <= int64(l.bytes) {
		return nil
	}

	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(r.Body, int64(l.bytes)), iotest.ErrReader(errLost)), r.Body}

	return nil
}

// Objects returns the paths of object files and of parts in unfinished uploads.
func (s *S3) Objects(t testing.TB) []string {
	t.Helper()

	var paths []string
	err := filepath.WalkDir(s.Dir, func(name string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) { // an upload ended during the walk
			return nil
		}

		if err == nil && !d.IsDir() {
			paths = append(paths, name)
		}

		return err
	})
	if err != nil {
		t.Fatal(fmt.Errorf("list objects of the S3 service: %w", err))
	}

	return paths
}
