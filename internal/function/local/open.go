package local

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/function/bundle"
	"github.com/socle-dev/socle/internal/function/runtime"
)

//go:embed open.js
var openProgram []byte

// openProcess is a function without walls.
type openProcess struct {
	*http.Transport
	cmd    *exec.Cmd
	exited chan struct{}
}

// startOpen starts a function with all rights of the developer, and returns when it listens.
func startOpen(
	ctx context.Context, b *bundle.Bundler, code []byte, env map[string]string, record func(runtime.Line),
) (*openProcess, error) {
	folder, err := os.MkdirTemp("", "socle-function-")
	if err != nil {
		return nil, err
	}

	address, err := freeAddress(ctx)
	if err == nil {
		err = errors.Join(os.Mkdir(filepath.Join(folder, "function"), 0o700),
			os.WriteFile(filepath.Join(folder, "function", "index.js"), code, 0o600),
			os.WriteFile(filepath.Join(folder, "open.js"), openProgram, 0o600))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}

	p := &openProcess{exited: make(chan struct{}), cmd: exec.Command(b.Program, "run", "--quiet", "--no-prompt",
		"--no-config", "--no-lock", "--no-remote", "--no-npm", "--allow-all", filepath.Join(folder, "open.js"))}
	p.Transport = &http.Transport{DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}}
	p.cmd.Env = append(bundle.Environ(b.Environ), "DENO_SERVE_ADDRESS=tcp:"+address)
	for name, value := range env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}

	var readers sync.WaitGroup
	for stream, open := range map[string]func() (io.ReadCloser, error){
		runtime.Stdout: p.cmd.StdoutPipe, runtime.Stderr: p.cmd.StderrPipe,
	} {
		pipe, err := open()
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
		readers.Go(func() { readLines(pipe, stream, record) })
	}

	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	go func() { // ends with the process
		readers.Wait()
		_ = p.cmd.Wait()
		_ = os.RemoveAll(folder)
		close(p.exited)
	}()

	return p, p.await(ctx, address)
}

// freeAddress returns an address that nothing listens on.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}

	return l.Addr().String(), l.Close()
}

func readLines(r io.Reader, stream string, record func(runtime.Line)) {
	lines := bufio.NewReader(r)
	for {
		text, err := lines.ReadString('\n')
		if text != "" {
			record(runtime.Line{Stream: stream, Text: strings.TrimRight(text, "\r\n")})
		}
		if err != nil {
			return
		}
	}
}

// await returns when the process listens. It ends a process that does not.
func (p *openProcess) await(ctx context.Context, address string) error {
	const interval = 20 * time.Millisecond
	timer := time.NewTicker(interval)
	defer timer.Stop()

	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}

		select {
		case <-p.exited:
			return &runtime.BootError{Text: fmt.Sprintf("its process ended (%v)", p.cmd.ProcessState)}
		case <-ctx.Done():
			p.End(ctx, "")
			return &runtime.BootError{Text: "it takes too long"}
		case <-timer.C:
		}
	}
}

// End ends the process.
func (p *openProcess) End(context.Context, string) {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Exited is closed when the process has ended.
func (p *openProcess) Exited() <-chan struct{} { return p.exited }
