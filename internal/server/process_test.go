package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/pgtest"
)

// binary builds the program once, with the race detector if the tests have it.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(testDir, "socle")
	// GOFLAGS of the tests: reuses their build cache
	build := exec.Command("go", "build", "-o", path, "../../cmd/socle")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}

	return path, nil
})

// command returns a command that runs the program with arguments and settings (NAME=value), without
// Socle's own variables of the environment.
func command(t *testing.T, settings []string, args ...string) *exec.Cmd {
	t.Helper()

	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(path, args...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "SOCLE_RATE_LIMIT=off", "SOCLE_DRAIN=0s",
		"SOCLE_POSTGRES_BIN=" + os.Getenv("SOCLE_POSTGRES_BIN"),
	}, settings...)

	for _, name := range []string{"GORACE", "GOGC", "GOMEMLIMIT"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}

	return cmd
}

// run runs a command to completion.
func run(t *testing.T, settings []string, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()

	cmd := command(t, settings, args...)
	var out, log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &log

	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}

	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

// process is a running socle serve.
type process struct {
	t    *testing.T
	dir  string
	url  string
	cmd  *exec.Cmd
	log  *output
	done chan struct{} // closed when the process has ended
}

// scratch returns the folder of the process's temporary files.
func (p *process) scratch() string { return p.dir + ".tmp" }

// output records the output of a process.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.text.String()
}

var readyLine = regexp.MustCompile(`Socle is ready at (\S+)`)

// serve starts a server on a data folder and waits until it is ready.
func serve(t *testing.T, dir string, settings ...string) *process {
	t.Helper()

	p := launch(t, dir, settings...)
	p.ready()

	return p
}

// launch starts a server. The test's cleanup stops it and its PostgreSQL.
func launch(t *testing.T, dir string, settings ...string) *process {
	t.Helper()

	return launchWith(t, dir, func(*exec.Cmd) {}, settings...)
}

// launchWith is [launch] with a modified command.
func launchWith(t *testing.T, dir string, change func(*exec.Cmd), settings ...string) *process {
	t.Helper()

	p := &process{t: t, dir: dir, log: &output{}, done: make(chan struct{})}
	if err := os.MkdirAll(p.scratch(), 0o700); err != nil {
		t.Fatal(err)
	}

	p.cmd = command(t,
		append([]string{"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + dir, "TMPDIR=" + p.scratch()}, settings...),
		"serve")
	change(p.cmd)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log

	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}

	go func() {
		defer close(p.done)

		_ = p.cmd.Wait() // the exit status is in ProcessState
	}()

	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.done

		if pid := p.postmaster(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
			eventually(t, "PostgreSQL has ended", func() bool { return p.postmaster() == 0 })
		}

		if t.Failed() {
			text := p.log.String()
			t.Logf("the server said at last:\n%s", text[max(0, len(text)-4<<10):])
		}
	})

	return p
}

// ready waits until the server prints its address.
func (p *process) ready() {
	p.t.Helper()

	eventually(p.t, "the server is ready", func() bool {
		select {
		case <-p.done:
			p.t.Fatalf("the server has ended:\n%s", p.log)
		default:
		}

		found := readyLine.FindStringSubmatch(p.log.String())
		if found != nil {
			p.url = found[1]
		}

		return found != nil
	})
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // fails if the process has ended

// wait waits for the end of the server, and returns its exit status.
func (p *process) wait() int {
	p.t.Helper()

	select {
	case <-p.done:
	case <-time.After(pgtest.Patience):
		p.t.Fatal("the server does not end")
	}

	return p.cmd.ProcessState.ExitCode()
}

// postmaster returns the process ID of PostgreSQL in the data folder, 0 if none runs.
func (p *process) postmaster() int {
	text, err := os.ReadFile(filepath.Join(p.dir, "postgres", "data", "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}

	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0
	}

	return pid
}

// eventually polls a condition until it holds, see [pgtest.Eventually].
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()

	pgtest.Eventually(t, what, holds)
}

// client is a user of a server that can crash at any time.
type client struct {
	url, token, project string
}

// answer is a response; its status is 0 without one.
type answer struct {
	status  int
	content map[string]any
	token   string
	body    []byte
}

// send sends a request. It fails the test if an error response has no envelope.
func (c client) send(t *testing.T, method, path, body string) answer {
	return c.sendAs(t, method, path, "application/json", strings.NewReader(body))
}

func (c client) sendAs(t *testing.T, method, path, contentType string, body io.Reader) answer {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()

	r, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		t.Error(err)
		return answer{}
	}

	r.Header.Set("Content-Type", contentType)

	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.project != "" {
		r.Header.Set("X-Project", c.project)
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}
	}
	defer res.Body.Close()

	a := answer{status: res.StatusCode}
	if a.body, err = io.ReadAll(res.Body); err != nil {
		return answer{}
	}

	var e struct {
		Content  any
		Metadata struct{ Token, RequestID string }
		Success  bool
	}

	err = json.Unmarshal(a.body, &e)
	if res.StatusCode >= 400 && (err != nil || e.Content != "null" || e.Metadata.RequestID == "") {
		t.Errorf("%s %s: no envelope with status %d: %s", method, path, res.StatusCode, a.body)
	}

	a.token = e.Metadata.Token
	a.content, _ = e.Content.(map[string]any)

	return a
}

// probe sends a load balancer's request, without an envelope in the response, and returns the
// status.
func (c client) probe(t *testing.T, path string) int {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	r, err := http.NewRequestWithContext(ctx, "GET", c.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()

	return res.StatusCode
}

// want is send with an expected status. It returns the content.
func (c client) want(t *testing.T, status int, method, path, body string) map[string]any {
	t.Helper()

	a := c.send(t, method, path, body)
	if a.status != status {
		t.Fatalf("%s %s: got status %d, want %d: %s", method, path, a.status, status, a.body)
	}

	return a.content
}

// newClient signs up a user and creates a project.
func (p *process) newClient() client {
	p.t.Helper()

	c := client{url: p.url}
	a := c.send(p.t, "POST", "/users",
		`{"username": "ada", "email": "ada@example.com", "password": "correct horse battery"}`)
	if a.status != 201 {
		p.t.Fatalf("sign up: %d %s", a.status, a.body)
	}

	c.token = a.token
	c.project, _ = c.want(p.t, 201, "POST", "/projects", `{"name": "shop"}`)["uuid"].(string)

	return c
}

// at returns the same user at another server.
func (c client) at(p *process) client {
	c.url = p.url
	return c
}

// install is the data folder of a stopped server: its PostgreSQL, and a user with a project.
// Creating it costs as much processor time as copying it ten times.
var install struct {
	once sync.Once
	dir  string
	user client
}

// startInstalled starts a server with settings on a copy of the install. Its PostgreSQL runs
// without fsync: writes survive a crash of the process, not of the machine.
func startInstalled(t *testing.T, settings ...string) (*process, client) {
	t.Helper()

	install.once.Do(func() {
		p := serve(t, filepath.Join(testDir, "install"))
		user := p.newClient()
		b := p.inspect(t)
		b.exec(`alter system set fsync = off`)
		b.close()
		p.signal(syscall.SIGTERM)

		if status := p.wait(); status != 0 {
			t.Fatalf("exit status %d", status)
		}

		install.dir, install.user = p.dir, user
	})

	if install.dir == "" {
		t.Fatal("no install: the test that creates it has failed")
	}

	dir := filepath.Join(t.TempDir(), "data")
	if out, err := exec.Command("cp", "-Rp", install.dir, dir).CombinedOutput(); err != nil {
		t.Fatalf("copy the install: %v: %s", err, out)
	}

	p := serve(t, dir, settings...)
	user := install.user.at(p)

	// the token can have expired since the install was created
	user.token = user.send(t, "POST", "/users/login",
		`{"email": "ada@example.com", "password": "correct horse battery"}`).token

	return p, user
}
