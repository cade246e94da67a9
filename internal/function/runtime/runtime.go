// Package runtime runs functions of tenants: one process of Deno behind the walls of package
// sandbox, which gets a function's module by its first message and answers requests on a Unix
// socket.
//
// A process starts blank, so that it can wait for the function that needs it. Which function that
// is, how long it lives and what it may use over time is up to package function.
package runtime

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/socle-dev/socle/internal/function/sandbox"
)

// Modules of the process: the first one is its program.
var (
	//go:embed bootstrap.js
	bootstrap []byte
	//go:embed codecache.js
	codeCache []byte
	//go:embed network.js
	network []byte
)

const (
	// baseline is the private memory that Deno reserves for itself, mostly V8's range for code.
	baseline = 557 << 20

	temporary   = 32 << 20 // bytes of /tmp
	maxFiles    = 512
	maxThreads  = 64
	maxHeader   = 64 << 10 // bytes
	idleTimeout = 30 * time.Second

	maxConnections = 160 // to a process: its requests, and the one that ends it
	maxIdle        = 64
)

// DefaultMemoryMB is the memory that a function may allocate, unless its project has another limit.
const DefaultMemoryMB = 256

// ErrMissing reports that Deno is not installed.
var ErrMissing = errors.New("Deno, which runs functions, is not installed")

// Config describes a process.
type Config struct {
	Program  string // path of Deno
	MemoryMB int    // what the function may allocate

	// Outward serves the proxy: requests with an absolute address, and CONNECT.
	Outward http.Handler

	// Log receives the lines that the process writes. It is called from one goroutine for each
	// stream, and must not block for long.
	Log func(Line)
}

// Module is a function, as its process needs it.
type Module struct {
	Code      []byte            // JavaScript
	CodeCache []byte            // what [Process.Compile] returned for the same code, or nil
	Env       map[string]string // with secrets
	Origins   Origins
}

// Origins are the server's own addresses. Requests to the public one go to the inner one, which
// [Config.Outward] serves. The zero value has none.
type Origins struct {
	Public string `json:"public"`
	Inside string `json:"inside"`
}

// BootError reports that a module does not load.
type BootError struct{ Text string }

func (e *BootError) Error() string { return "the function does not start: " + e.Text }

// Process is a process of Deno. It is safe for concurrent use.
type Process struct {
	*sandbox.Process

	outward   http.Handler
	transport *http.Transport
	booted    chan string // one message: empty, or why the module does not load
	once      sync.Once
	compiling atomic.Bool // nothing of a function runs in the process
	compiled  chan []byte // one message: the code cache
	readers   sync.WaitGroup
}

// Start starts a blank process.
func Start(ctx context.Context, c Config) (*Process, error) {
	if _, err := os.Stat(c.Program); c.Program == "" || err != nil {
		return nil, ErrMissing
	}

	stdout, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()

	stderr, errors, err := os.Pipe()
	if err != nil {
		_ = stdout.Close()
		return nil, err
	}
	defer errors.Close()

	p := &Process{outward: c.Outward, booted: make(chan string, 1), compiled: make(chan []byte, 1)}
	p.Process, err = sandbox.Start(ctx, sandbox.Config{
		Program: c.Program, Args: arguments(c.MemoryMB), Env: environment(), Stdout: out, Stderr: errors,
		Files: []sandbox.File{{Path: "/rt/main.js", Content: bootstrap}, {Path: "/rt/codecache.js", Content: codeCache},
			{Path: "/rt/network.js", Content: network}},
		Limits: sandbox.Limits{Data: baseline + int64(c.MemoryMB)<<20, Temporary: temporary, Files: maxFiles,
			Threads: maxThreads},
	})
	if err != nil {
		_, _ = stdout.Close(), stderr.Close()
		return nil, err
	}

	p.readers.Go(func() { readLines(stdout, Stdout, c.Log) })
	p.readers.Go(func() { readLines(stderr, Stderr, c.Log) })
	p.serveProxy()
	p.transport = &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) },
		MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
	}

	return p, nil
}

// arguments returns Deno's arguments. Its permissions are the second wall, not the first. A quarter
// of the memory is for buffers, which are outside the heap.
func arguments(memoryMB int) []string {
	heap := memoryMB * 3 / 4

	return []string{"run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm",
		"--v8-flags=--max-old-space-size=" + strconv.Itoa(heap), "--allow-env", "--allow-net",
		"--allow-read=/tmp,/run,/rt", "--allow-write=/tmp,/run", "--allow-sys", "/rt/main.js"}
}

func environment() []string {
	const proxy = "http://" + sandbox.ProxyAddress
	return []string{"HOME=/tmp", "TMPDIR=/tmp", "DENO_DIR=/tmp/deno", "DENO_NO_UPDATE_CHECK=1", "NO_COLOR=1",
		"LD_LIBRARY_PATH=/lib", "HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy}
}

// serveProxy serves the address at which the process reaches the server, until the process ends.
func (p *Process) serveProxy() {
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodConnect || r.URL.IsAbs() {
				p.outward.ServeHTTP(w, r)
				return
			}

			p.report(w, r)
		}),
		ReadHeaderTimeout: idleTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: discardLog,
	}

	p.readers.Go(func() {
		_ = server.Serve(p.Proxy) // ends when the process ends
		_ = server.Close()
	})
}

// report takes the process's message that its module listens, or why it failed.
func (p *Process) report(w http.ResponseWriter, r *http.Request) {
	if p.compiling.Load() {
		p.takeCodeCache(w, r)
		return
	}

	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHeader))
	if err != nil {
		return
	}

	message := string(text)
	if r.URL.Path == "/listening" {
		message = ""
		if err := p.Listening(); err != nil {
			message = err.Error()
		}
	} else if message == "" {
		message = "no reason is known"
	}

	p.once.Do(func() { p.booted <- message })
	w.WriteHeader(http.StatusNoContent)
}

// Load gives a blank process its function, once. It returns when the function answers requests, and
// fails with a *BootError if the module does not load before ctx ends.
func (p *Process) Load(ctx context.Context, m Module) error {
	result, err := p.send(m, map[string]any{"env": m.Env, "origins": m.Origins})
	if err != nil {
		return err
	}

	select {
	case text := <-p.booted:
		if text != "" {
			return &BootError{text}
		}

		return nil
	case <-p.Exited():
		return p.exitError(<-result)
	case <-ctx.Done():
		return &BootError{"it takes too long"}
	}
}

// send sends the first message. The channel has one message: whether the process took it.
func (p *Process) send(m Module, settings map[string]any) (<-chan error, error) {
	settings["size"] = len(m.Code)
	line, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}

	message := net.Buffers{append(line, '\n'), m.Code, m.CodeCache}
	result := make(chan error, 1)
	go func() { // ends with the process at the latest
		_, err := message.WriteTo(p.Input)
		result <- errors.Join(err, p.Input.Close())
	}()

	return result, nil
}

// exitError returns why a process ended while its module loaded.
func (p *Process) exitError(sent error) error {
	select {
	case text := <-p.booted: // its last words
		if text != "" {
			return &BootError{text}
		}
	default:
	}

	return &BootError{fmt.Sprintf("its process ended (%v, %v)", p.State(), sent)}
}

// RoundTrip sends a request to the function.
func (p *Process) RoundTrip(r *http.Request) (*http.Response, error) { return p.transport.RoundTrip(r) }

// End asks the function to finish its background work, for a reason, and ends the process when that
// is done or ctx ends.
func (p *Process) End(ctx context.Context, reason string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://function/.socle/end", nil)
	if err == nil {
		r.Header.Set("Reason", reason)
		if res, err := p.transport.RoundTrip(r); err == nil {
			_ = res.Body.Close()
		}
	}

	p.Close()
}

// Close kills the process and returns when everything of it has ended.
func (p *Process) Close() {
	p.Kill()
	<-p.Exited()
	p.transport.CloseIdleConnections()
	p.readers.Wait()
}
