//go:build amd64 || arm64

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

	// startTimeout bounds the init stage.
	startTimeout = 10 * time.Second

	// maxReport bounds the init stage's message of failure in bytes.
	maxReport = 4 << 10
)

// setupCapabilities are the init stage's rights, which end before the program begins. They hold in
// its own namespaces only.
var setupCapabilities = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID,
	unix.CAP_SETPCAP}

// starts counts the sandboxes of this process, each of which takes another user ID.
var starts atomic.Uint32

// Start starts a program. It fails with ErrRefused if the kernel refuses the namespaces.
func Start(ctx context.Context, c Config) (*Process, error) {
	if !initialized.Load() {
		return nil, errors.New("sandbox: the program does not call Init")
	}

	binds, err := resolveLibraries(c.Program)
	if err != nil {
		return nil, err
	}

	spec, err := json.Marshal(spec{Binds: binds, Files: c.Files, Args: c.Args, Env: c.Env, Limits: c.Limits})
	if err != nil {
		return nil, err
	}

	ours, theirs, err := controlSockets()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	defer theirs.Close()

	p := &Process{exited: make(chan struct{})}
	if err := p.spawn(c, theirs); err != nil {
		return nil, err
	}
	_ = theirs.Close() // so that the child's end is the only one

	if err := p.setUp(ctx, ours, spec); err != nil {
		p.Kill()
		<-p.exited

		return nil, err
	}

	return p, nil
}

// controlSockets returns the two ends of the connection to the init stage.
func controlSockets() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create the control sockets: %w", err)
	}

	file := os.NewFile(uintptr(pair[0]), "control")
	defer file.Close()

	theirs := os.NewFile(uintptr(pair[1]), "control")
	conn, err := net.FileConn(file)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}

	return conn.(*net.UnixConn), theirs, nil
}

// spawn starts the init stage. Its thread lives as long as the process: the kernel would otherwise
// believe that the parent died, and kill it.
func (p *Process) spawn(c Config, control *os.File) error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{initName}
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=off"}
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	cmd.ExtraFiles = []*os.File{control}
	cmd.SysProcAttr = attributes()

	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()

		var err error
		if p.Input, err = cmd.StdinPipe(); err == nil {
			err = cmd.Start()
		}
		if err != nil {
			result <- refused(err)
			return
		}

		p.process = cmd.Process
		result <- nil

		_ = cmd.Wait() // the state has the outcome
		p.end(cmd.ProcessState)
	}()

	return <-result
}

// attributes returns the namespaces and the user of a new sandbox: one user ID of the server's
// namespace, which has no meaning elsewhere if that is possible.
func attributes() *syscall.SysProcAttr {
	uid, gid := os.Getuid(), os.Getgid()
	separate := false
	if uid == 0 {
		uid, separate = separateID("/proc/self/uid_map", uid)
		if separate {
			gid, separate = separateID("/proc/self/gid_map", gid)
		}
		if !separate {
			uid, gid = os.Getuid(), os.Getgid()
		}
	}

	return &syscall.SysProcAttr{
		Cloneflags:                 namespaces,
		Pdeathsig:                  syscall.SIGKILL,
		Setsid:                     true,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: insideID, HostID: uid, Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: insideID, HostID: gid, Size: 1}},
		GidMappingsEnableSetgroups: separate,
		AmbientCaps:                setupCapabilities,
	}
}

// separateIDs is the number of IDs that sandboxes take by turns, at the end of the range that the
// server may use.
const separateIDs = 4096

// separateID returns an ID that no user has, as far as the server's own namespace has that many.
func separateID(file string, own int) (int, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return own, false
	}

	end := 0
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			first, _ := strconv.Atoi(fields[0])
			size, _ := strconv.Atoi(fields[2])
			end = max(end, first+size)
		}
	}

	const reserved = 2 * separateIDs // nobody, and the system's own at the end
	if end < 8*separateIDs {
		return own, false
	}

	return end - reserved - int(starts.Add(1)%separateIDs), true
}

// setUp sends the spec to the init stage, and takes what it opened. It returns when the program
// runs.
func (p *Process) setUp(ctx context.Context, control *net.UnixConn, spec []byte) error {
	deadline := time.Now().Add(startTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}

	stop := context.AfterFunc(ctx, func() { _ = control.SetDeadline(time.Now()) })
	defer stop()

	err := errors.Join(control.SetDeadline(deadline), writeAll(control, spec), control.CloseWrite())
	if err != nil {
		return fmt.Errorf("send the spec of a sandbox: %w", err)
	}

	files, text, err := receive(control)
	if err != nil {
		return fmt.Errorf("start a sandbox: %w", err)
	}
	if text != "" || len(files) != 2 {
		closeFiles(files)
		return failure(text)
	}

	listener, err := net.FileListener(files[0])
	_ = files[0].Close()
	if err != nil {
		_ = files[1].Close()
		return fmt.Errorf("take the listener of a sandbox: %w", err)
	}

	p.open(listener, files[1])

	rest, err := io.ReadAll(io.LimitReader(control, maxReport)) // ends when the program begins
	if err != nil {
		return fmt.Errorf("start the program of a sandbox: %w", err)
	}
	if len(rest) > 0 {
		return failure(string(rest))
	}

	return nil
}

func writeAll(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}

// failure returns the error that the init stage reported.
func failure(text string) error {
	kind, text, _ := strings.Cut(text, "\n")
	err := errors.New("build the walls: " + text)
	if kind == reportRefused {
		return fmt.Errorf("%w (%w)", ErrRefused, err)
	}

	return err
}

// refused marks an error of the kernel's refusal to create namespaces.
func refused(err error) error {
	for _, number := range []error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, number) {
			return fmt.Errorf("%w (%w)", ErrRefused, err)
		}
	}

	return fmt.Errorf("start a sandbox: %w", err)
}

// receive takes the files of the init stage, or its message of failure.
func receive(control *net.UnixConn) ([]*os.File, string, error) {
	text, rights := make([]byte, maxReport), make([]byte, unix.CmsgSpace(2*4))
	n, r, _, _, err := control.ReadMsgUnix(text, rights)
	if err != nil {
		return nil, "", err
	}

	messages, err := unix.ParseSocketControlMessage(rights[:r])
	if err != nil || len(messages) == 0 {
		return nil, string(text[:n]), err
	}

	var files []*os.File
	for _, m := range messages {
		numbers, err := unix.ParseUnixRights(&m)
		if err != nil {
			closeFiles(files)
			return nil, "", err
		}

		for _, number := range numbers {
			files = append(files, os.NewFile(uintptr(number), "sandbox"))
		}
	}

	return files, "", nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
