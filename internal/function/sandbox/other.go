//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"io"
	"net"
	"os"
)

// Init does nothing on this system.
func Init() {}

// Process is a running program. There is none on this system.
type Process struct {
	Proxy net.Listener
	Input io.WriteCloser
}

// Start fails with ErrUnsupported.
func Start(context.Context, Config) (*Process, error) { return nil, ErrUnsupported }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return nil }

// HasExited reports whether the process has ended.
func (p *Process) HasExited() bool { return true }

// State returns how the process ended.
func (p *Process) State() *os.ProcessState { return nil }

// Kill ends the process.
func (p *Process) Kill() {}

// Usage fails with ErrUnsupported.
func (p *Process) Usage() (Usage, error) { return Usage{}, ErrUnsupported }

// Listening fails with ErrUnsupported.
func (p *Process) Listening() error { return ErrUnsupported }

// Dial fails with ErrUnsupported.
func (p *Process) Dial(context.Context) (net.Conn, error) { return nil, ErrUnsupported }
