package socle

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// TempDir creates a temporary folder in parent, "" for the default. PostgreSQL can use it even if
// it runs as another user.
func TempDir(parent, pattern string) (string, error) {
	dir, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", err
	}

	if err := os.Chmod(dir, 0o755); err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}

	return dir, nil
}

// Build compiles Socle from this tree into a folder, and returns the path of the program.
func Build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "socle")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/socle").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build socle: %w\n%s", err, out)
	}

	return program, nil
}

// Serve starts a program with the argument serve and settings. "" stands for this tree, built into
// dir.
func Serve(ctx context.Context, program, dir string, settings []string) (*Process, error) {
	if program == "" {
		built, err := Build(ctx, dir)
		if err != nil {
			return nil, err
		}

		program = built
	}

	cmd := exec.Command(program, "serve")
	cmd.Env, cmd.Stderr = append(os.Environ(), settings...), os.Stderr

	return StartSocle(cmd)
}

// Process is a server in a separate process.
type Process struct {
	URL   string
	Ended chan struct{} // closed at the end of the process
	cmd   *exec.Cmd
}

// StartSocle starts Socle, and waits until it prints that it is ready.
func StartSocle(cmd *exec.Cmd) (*Process, error) { return startProcess(cmd, "Socle is ready at ") }

// StartProcess starts a server that prints its address as the last word of its first line, and
// waits for that line.
func StartProcess(cmd *exec.Cmd) (*Process, error) { return startProcess(cmd, "") }

// startProcess takes the address from the first line with a prefix.
func startProcess(cmd *exec.Cmd, prefix string) (*Process, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}

	if err := cmd.Start(); err != nil {
		return nil, err
	}

	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	for err == nil && !strings.HasPrefix(line, prefix) {
		line, err = lines.ReadString('\n')
	}

	p := &Process{Ended: make(chan struct{}), cmd: cmd}

	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait()
		close(p.Ended)
	}()

	fields := strings.Fields(line)
	if err == nil && len(fields) == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		p.Stop()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}

	p.URL = fields[len(fields)-1]
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop asks the server to stop, and waits for its end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.Ended
}

// Kill ends the server at once, without waiting.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }
