//go:build amd64 || arm64

package sandbox

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a running program. It is safe for concurrent use.
type Process struct {
	// Proxy accepts the program's connections to [ProxyAddress]. It closes at the program's end.
	Proxy net.Listener

	// Input is the program's standard input.
	Input io.WriteCloser

	exited chan struct{} // closed after state is set

	process *os.Process

	mu     sync.Mutex
	state  *os.ProcessState // nil: it runs
	folder *os.File         // the program's /run
	socket *os.File         // the inode at SocketPath, once it exists
}

// open keeps what the init stage opened, unless the process has ended.
func (p *Process) open(proxy net.Listener, folder *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.Proxy, p.folder = proxy, folder
	if p.state != nil {
		p.release()
	}
}

// end records the end of the process and releases everything it had.
func (p *Process) end(state *os.ProcessState) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.state = state
	p.release()
	close(p.exited)
}

func (p *Process) release() {
	_ = p.Input.Close()
	if p.Proxy != nil {
		_ = p.Proxy.Close()
	}

	_ = p.folder.Close() // a nil file refuses
	_ = p.socket.Close()
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// HasExited reports whether the process has ended.
func (p *Process) HasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// State returns how the process ended, after [Process.Exited].
func (p *Process) State() *os.ProcessState { return p.state }

// Kill ends the process, and with it everything inside.
func (p *Process) Kill() { _ = p.process.Kill() } // fails after the end only

// Usage returns what the process uses. It fails with os.ErrProcessDone after its end.
func (p *Process) Usage() (Usage, error) {
	p.mu.Lock() // until the end is recorded the process is a zombie at least, so its ID is no other's
	defer p.mu.Unlock()

	if p.state != nil {
		return Usage{}, os.ErrProcessDone
	}

	var cpu unix.Timespec
	if err := unix.ClockGettime(cpuClock(p.process.Pid), &cpu); err != nil {
		return Usage{}, fmt.Errorf("read the processor time of a sandbox: %w", err)
	}

	memory, err := residentBytes(p.process.Pid)
	if err != nil {
		return Usage{}, err
	}

	return Usage{CPU: time.Duration(cpu.Nano()), Memory: memory}, nil
}

// cpuClock returns the clock of a process's processor time, as clock_getcpuclockid(3) does.
func cpuClock(pid int) int32 {
	const scheduled = 2
	return int32(^pid)<<3 | scheduled
}

func residentBytes(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, fmt.Errorf("read the memory of a sandbox: %w", err)
	}

	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("read the memory of a sandbox: unexpected %q", text)
	}

	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// Listening notes that the program listens at [SocketPath]. Later connections go to that socket,
// whatever the program does to the path.
func (p *Process) Listening() error {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.state != nil {
		return os.ErrProcessDone
	}

	number, err := unix.Openat2(int(p.folder.Fd()), filepath.Base(SocketPath), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return fmt.Errorf("open the socket of a sandbox: %w", err)
	}

	socket := os.NewFile(uintptr(number), "socket")
	if info, err := socket.Stat(); err != nil || info.Mode().Type() != os.ModeSocket {
		_ = socket.Close()
		return fmt.Errorf("the socket of a sandbox is none (%w)", err)
	}

	p.socket = socket
	return nil
}

// Dial connects to the program, see [Process.Listening].
func (p *Process) Dial(ctx context.Context) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock() // so that the number stays the socket's; connecting to a Unix socket hardly waits

	if p.state != nil || p.socket == nil {
		return nil, os.ErrProcessDone
	}

	// The kernel's link leads to the inode itself: there is no path that the program could change.
	return new(net.Dialer).DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(int(p.socket.Fd())))
}
