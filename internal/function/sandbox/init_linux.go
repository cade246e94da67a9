//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	initName    = "socle-sandbox" // argument 0 of the init stage
	insideID    = 1000            // user and group inside
	controlFile = 3

	// niceness lets the server and PostgreSQL go first.
	niceness = 10
	// oomScore makes the kernel end a program first when memory is short.
	oomScore = "800"
)

// Kinds of reports from the init stage: the first line.
const (
	reportRefused = "refused"
	reportFailed  = "failed"
)

// initialized is set by Init: without it, the init stage would run main.
var initialized atomic.Bool

// spec is what the init stage builds.
type spec struct {
	Binds  []bind
	Files  []File
	Args   []string
	Env    []string
	Limits Limits
}

// Init must be called at the begin of main, and of TestMain. In the init stage it never returns.
func Init() {
	if initialized.Store(true); len(os.Args) != 1 || os.Args[0] != initName || os.Getpid() != 1 {
		return
	}

	runtime.LockOSThread() // rights, limits and filters are those of one thread

	control := os.NewFile(controlFile, "control")
	err := become(control)

	kind := reportFailed
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		kind = reportRefused
	}

	_, _ = fmt.Fprintf(control, "%s\n%v", kind, err)
	os.Exit(1)
}

// become builds the walls and becomes the program. It returns only an error.
func become(control *os.File) error {
	text, err := io.ReadAll(control)
	if err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}

	var s spec
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}

	trees, err := openTrees(s.Binds) // with the server's user ID, which may read the folders
	if err != nil {
		return err
	}
	if err := takeUser(); err != nil {
		return err
	}

	listener, err := openNetwork()
	if err != nil {
		return err
	}
	if err := buildRoot(s, trees); err != nil {
		return err
	}

	folder, err := unix.Open("/run", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /run: %w", err)
	}
	if err := unix.Sendmsg(controlFile, []byte{0}, unix.UnixRights(listener, folder), nil, 0); err != nil {
		return fmt.Errorf("send the files: %w", err)
	}

	_ = unix.Close(listener)
	unix.CloseOnExec(controlFile)

	filter, err := seccompFilter()
	if err != nil {
		return fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	if err := limit(s.Limits); err != nil {
		return err
	}
	if err := dropRights(); err != nil {
		return err
	}
	if err := install(filter); err != nil {
		return fmt.Errorf("install the filter of system calls: %w", err)
	}

	return fmt.Errorf("start the program: %w",
		syscall.Exec(programPath, append([]string{programPath}, s.Args...), s.Env))
}

// takeUser gives up the server's user ID. The capabilities stay, since no root is mapped.
func takeUser() error {
	// Only a sandbox with an ID of its own may change its groups. Others keep the server's, which
	// own nothing inside.
	if err := syscall.Setgroups(nil); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("give up the groups: %w", err)
	}
	if err := syscall.Setresgid(insideID, insideID, insideID); err != nil {
		return fmt.Errorf("take the group: %w", err)
	}
	if err := syscall.Setresuid(insideID, insideID, insideID); err != nil {
		return fmt.Errorf("take the user: %w", err)
	}

	// A change of the user clears it, and makes the files of /proc/self those of root.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the server: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("own /proc/self: %w", err)
	}

	return nil
}

// limit sets the bounds that the kernel keeps.
func limit(l Limits) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0); err != nil {
		return fmt.Errorf("set the score for short memory: %w", err)
	}

	for resource, value := range map[int]uint64{
		unix.RLIMIT_DATA: uint64(l.Data), unix.RLIMIT_NOFILE: uint64(l.Files), unix.RLIMIT_NPROC: uint64(l.Threads),
		unix.RLIMIT_FSIZE: uint64(l.Temporary), unix.RLIMIT_CORE: 0, unix.RLIMIT_MEMLOCK: 0,
		unix.RLIMIT_MSGQUEUE: 0, unix.RLIMIT_SIGPENDING: 64, unix.RLIMIT_NICE: 0, unix.RLIMIT_RTPRIO: 0,
		unix.RLIMIT_STACK: 8 << 20,
	} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("set limit %d: %w", resource, err)
		}
	}

	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, niceness); err != nil {
		return fmt.Errorf("set the priority: %w", err)
	}

	return nil
}

// dropRights gives up all capabilities, for good.
func dropRights() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) { // unknown to this kernel
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}

	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := [2]unix.CapUserData{} // version 3 has two words
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop the capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse new rights: %w", err)
	}

	return nil
}

// openNetwork brings up the loopback interface and returns the listener of the proxy.
func openNetwork() (int, error) {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("create the proxy's socket: %w", err)
	}

	request, err := unix.NewIfreq("lo")
	if err != nil {
		return 0, err
	}

	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(listener, unix.SIOCSIFFLAGS, request); err != nil {
		return 0, fmt.Errorf("bring up the loopback interface: %w", err)
	}

	// Sockets inside take memory of the kernel, so their buffers are small.
	for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
		const sizes = "4096 65536 262144"
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(sizes), 0); err != nil {
			return 0, fmt.Errorf("bound the buffers of sockets: %w", err)
		}
	}

	address := &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(listener, address); err != nil {
		return 0, fmt.Errorf("bind the proxy's socket: %w", err)
	}
	if err := unix.Listen(listener, proxyBacklog); err != nil {
		return 0, fmt.Errorf("listen for the proxy: %w", err)
	}

	return listener, nil
}

const (
	proxyPort    = 3128 // as in ProxyAddress
	proxyBacklog = 128
)
