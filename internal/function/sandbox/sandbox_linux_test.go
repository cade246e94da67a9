//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/pgtest"
)

// parentVariable makes the test binary a server that waits for its end.
const parentVariable = "SOCLE_TEST_SANDBOX_PARENT"

func TestMain(m *testing.M) {
	Init()
	if os.Getenv(parentVariable) != "" {
		runParent()
	}

	os.Exit(m.Run())
}

// parentPrograms is the number of programs that runParent starts.
const parentPrograms = 2

// runParent starts programs that never end, writes their process IDs, and waits.
func runParent() {
	for range parentPrograms {
		p, err := Start(context.Background(), programConfig("while (true);", nil, os.Stderr))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}

		fmt.Println(p.process.Pid)
	}

	select {}
}

// deno returns the path of Deno, which make deno installs.
func deno() string {
	path, err := filepath.Abs("../../../bin/deno/deno")
	if err != nil {
		panic(err)
	}

	return path
}

// programConfig returns the configuration of a program that runs code with these permissions.
func programConfig(code string, permissions []string, out *os.File, env ...string) Config {
	args := append([]string{"run", "--quiet", "--no-prompt", "--no-config", "--no-lock"}, permissions...)
	return Config{
		Program: deno(), Args: append(args, "/rt/main.js"),
		Env: append([]string{"HOME=/tmp", "DENO_DIR=/tmp/deno", "DENO_NO_UPDATE_CHECK=1",
			"LD_LIBRARY_PATH=/lib"}, env...),
		Files: []File{{Path: "/rt/main.js", Content: []byte(code)}}, Stdout: out, Stderr: out,
		Limits: Limits{Data: 813 << 20, Temporary: 32 << 20, Files: 512, Threads: 64},
	}
}

// start starts a program and returns it with what it writes.
func start(t *testing.T, code string, permissions []string, env ...string) (*Process, *bufio.Scanner) {
	t.Helper()

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })

	p, err := Start(t.Context(), programConfig(code, permissions, w, env...))
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Exited()
	})

	return p, bufio.NewScanner(r)
}

// TestHostile: neither with Deno's permissions nor without them does a program reach anything.
func TestHostile(t *testing.T) {
	t.Parallel()

	code, err := os.ReadFile("testdata/hostile.js")
	if err != nil {
		t.Fatal(err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })

	abstract := "socle-test-" + strconv.Itoa(os.Getpid())
	unix, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close() })

	outside, err := filepath.Abs("doc.go")
	if err != nil {
		t.Fatal(err)
	}

	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for name, permissions := range map[string][]string{
		"permissions": {"--allow-env", "--allow-net", "--allow-read=/tmp,/rt", "--allow-write=/tmp"}, "all": {"-A"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, lines := start(t, string(code), permissions, "OUTSIDE="+outside, "PORT="+port, "ABSTRACT="+abstract)
			last := ""
			for lines.Scan() {
				var outcome struct{ Name, Reached, Refused string }
				if err := json.Unmarshal(lines.Bytes(), &outcome); err != nil {
					t.Fatalf("output: %s", lines.Text())
				}
				if last = outcome.Name; outcome.Refused == "" {
					t.Errorf("%s: reached %q", outcome.Name, outcome.Reached)
				}
			}

			if last != "end" {
				t.Errorf("the program ended after the attempt %q", last)
			}
		})
	}
}

// TestHostileAsNobody repeats the tests as an ordinary user, if this one is root.
func TestHostileAsNobody(t *testing.T) {
	t.Parallel()

	if os.Getuid() != 0 {
		return // the other tests are those of an ordinary user
	}

	const nobody = 65534
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^(TestHostile|TestLimits|TestServerDies)$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLimits: a program that takes memory, threads or time ends or gets an error, and is killed.
func TestLimits(t *testing.T) {
	t.Parallel()

	t.Run("memory", func(t *testing.T) {
		t.Parallel()

		// It gets a RangeError, or V8 ends it when its own heap finds no more memory.
		p, lines := start(t, `
			const all = [];
			for (let i = 0; i < 64; i++) all.push(new Uint8Array(16 << 20).fill(1));
			console.log("took 1 GB");`, nil)
		if lines.Scan() && strings.Contains(lines.Text(), "took") {
			t.Error(lines.Text())
		}
		if <-p.Exited(); p.State().Success() {
			t.Error("the program ended as if it had got all memory")
		}
	})

	t.Run("threads", func(t *testing.T) {
		t.Parallel()

		p, _ := start(t, `
			const url = "data:application/javascript,while(true);";
			for (let i = 0; i < 500; i++) new Worker(url, { type: "module" });
			console.log("all");`, []string{"-A"})
		<-p.Exited()
		if p.State().Success() {
			t.Error("500 workers ran")
		}
	})

	t.Run("time", func(t *testing.T) {
		t.Parallel()

		p, _ := start(t, "while (true);", nil)
		pgtest.Eventually(t, "processor time is used", func() bool {
			u, err := p.Usage()
			return err == nil && u.CPU > 200*time.Millisecond
		})

		p.Kill()
		<-p.Exited()
		if _, err := p.Usage(); err == nil {
			t.Error("an ended process has a usage")
		}
	})

	t.Run("stop", func(t *testing.T) {
		t.Parallel()

		_, lines := start(t, `Deno.kill(Deno.pid, "SIGSTOP"); Deno.kill(Deno.pid, "SIGKILL"); console.log("runs");`,
			[]string{"-A"})
		if !lines.Scan() || lines.Text() != "runs" {
			t.Errorf("got %q", lines.Text())
		}
	})
}

// TestConnections: the server accepts at the proxy's address, and reaches the program's socket.
func TestConnections(t *testing.T) {
	t.Parallel()

	p, lines := start(t, `
		const proxy = await Deno.connect({ hostname: "127.0.0.1", port: 3128 });
		await proxy.write(new TextEncoder().encode("ping"));
		const listener = Deno.listen({ transport: "unix", path: "/run/socket" });
		console.log("listening");
		const first = await listener.accept();
		Deno.removeSync("/run/socket");
		Deno.symlinkSync("/run/other", "/run/socket");
		await first.write(new TextEncoder().encode("one"));
		await (await listener.accept()).write(new TextEncoder().encode("two"));
		await new Promise(() => setTimeout(() => {}, 1e9));`, []string{"-A"})

	conn, err := p.Proxy.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	if got := readSome(t, conn); got != "ping" {
		t.Errorf("the proxy got %q", got)
	}
	if !lines.Scan() || lines.Text() != "listening" {
		t.Fatalf("got %q", lines.Text())
	}
	if err := p.Listening(); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"one", "two"} { // before and after the socket is a symbolic link
		conn, err := p.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := readSome(t, conn); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		_ = conn.Close()
	}
}

// TestSocketIsNoLink: a link in place of the socket is refused.
func TestSocketIsNoLink(t *testing.T) {
	t.Parallel()

	p, lines := start(t, `
		Deno.symlinkSync("/run/other", "/run/socket");
		console.log("linked");
		await new Promise(() => setTimeout(() => {}, 1e9));`, []string{"-A"})
	if !lines.Scan() {
		t.Fatal("no output")
	}
	if err := p.Listening(); err == nil {
		t.Error("a symbolic link was taken for the socket")
	}
}

func readSome(t *testing.T, conn net.Conn) string {
	t.Helper()

	b := make([]byte, 16)
	n, err := conn.Read(b)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}

	return string(b[:n])
}

// TestNoLeftovers counts what many sandboxes leave behind. It is not parallel to the others, which
// have files and processes of their own.
func TestNoLeftovers(t *testing.T) {
	count := func() (files, mounts, folders int) {
		descriptors, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}

		table, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}

		scaffolds, err := os.ReadDir(scaffold)
		if err != nil {
			t.Fatal(err)
		}

		return len(descriptors), strings.Count(string(table), "\n"), len(scaffolds)
	}

	run := func() {
		p, _ := start(t, "await new Promise(() => setTimeout(() => {}, 1e9));", nil)
		pid := p.process.Pid
		p.Kill()
		<-p.Exited()
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is left", pid)
		}
	}
	t.Run("first", func(t *testing.T) { run() }) // opens what stays open, such as the poller

	files, mounts, folders := count()
	t.Run("others", func(t *testing.T) {
		for range 20 {
			run()
		}
	})

	if f, m, d := count(); f > files+20 || m != mounts || d > folders {
		t.Errorf("%d files, %d mounts, %d folders; before %d, %d, %d", f, m, d, files, mounts, folders)
	}
}

// TestServerDies: nothing runs on when the server is killed, each of 20 times.
func TestServerDies(t *testing.T) {
	t.Parallel()

	for range 20 {
		killParent(t)
	}
}

// killParent starts a server with busy programs, kills it, and waits for their end.
func killParent(t *testing.T) {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), parentVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	pids := make([]int, parentPrograms)
	for i := range pids {
		if _, err := fmt.Fscan(out, &pids[i]); err != nil {
			t.Fatal(err)
		}
	}

	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, pid := range pids {
		pgtest.Eventually(t, "the end of the program", func() bool {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			return err != nil || strings.Contains(string(text), ") Z ") // nobody may reap an orphan here
		})
	}
}
