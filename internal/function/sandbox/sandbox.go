package sandbox

import (
	"errors"
	"os"
	"time"
)

// ErrUnsupported reports that this system can't build the walls.
var ErrUnsupported = errors.New("functions need Linux on amd64 or arm64")

// ErrRefused reports that the kernel refuses the namespaces, which an administrator can allow.
var ErrRefused = errors.New("the kernel refuses user namespaces: install package socle-functions, or allow them with " +
	"sysctl user.max_user_namespaces=65536, in a systemd unit as functions.conf of the package does, on Ubuntu also " +
	"with its AppArmor profile, in a container as compose.functions.yaml does")

// ProxyAddress is the address inside at which the program reaches the server, see [Process.Proxy].
const ProxyAddress = "127.0.0.1:3128"

// SocketPath is the path inside at which the program listens for the server, see [Process.Dial].
const SocketPath = "/run/socket"

// Config describes a program and its bounds.
type Config struct {
	Program string   // path outside; inside it is /program
	Args    []string // without the program's name
	Env     []string // the whole environment
	Files   []File   // read-only
	Limits  Limits

	// Stdout and Stderr receive what the program writes. A full pipe stops it.
	Stdout, Stderr *os.File
}

// File is a file inside.
type File struct {
	Path    string // absolute, below one directory
	Content []byte
}

// Limits are the bounds that the kernel keeps for a program.
type Limits struct {
	Data      int64 // bytes of private memory, RLIMIT_DATA
	Temporary int64 // bytes of /tmp
	Files     int   // open files
	Threads   int
}

// Usage is what a process has used.
type Usage struct {
	CPU    time.Duration // all threads, since the start
	Memory int64         // resident bytes
}
