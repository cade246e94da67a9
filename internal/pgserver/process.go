package pgserver

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/internal/tick"
)

// postmaster is PostgreSQL's first process: a child of this process, or an adopted one.
type postmaster struct {
	pid         int
	clusterName string        // see clusterName
	done        chan struct{} // closed when the child has ended; nil if adopted
}

// alive reports whether the process is running.
func (p *postmaster) alive() bool {
	if p.done == nil {
		return isProcessOf(p.pid, p.clusterName)
	}

	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// isReplaced reports whether the program that the process runs was removed or replaced. Without
// /proc it reports false.
func (p *postmaster) isReplaced() bool {
	program, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(p.pid), "exe"))
	return err == nil && strings.HasSuffix(program, " (deleted)")
}

// shutdown stops PostgreSQL with a fast shutdown. When ctx ends or after fastStopTimeout, it stops
// PostgreSQL immediately, without a checkpoint.
func (p *postmaster) shutdown(ctx context.Context) error {
	fast, cancel := context.WithTimeout(ctx, fastStopTimeout)
	defer cancel()

	if p.signal(fast, syscall.SIGINT) {
		return nil
	}

	immediate, cancel := context.WithTimeout(context.WithoutCancel(ctx), immediateStopTimeout)
	defer cancel()

	if p.signal(immediate, syscall.SIGQUIT) {
		return nil
	}

	return fmt.Errorf("process %d does not exit", p.pid)
}

// signal sends a signal to the process and reports whether it ended before ctx.
func (p *postmaster) signal(ctx context.Context, sig syscall.Signal) bool {
	if !p.alive() {
		return true
	}

	_ = syscall.Kill(p.pid, sig) // fails if it has just ended

	for p.alive() {
		select {
		case <-p.done:
		case <-ctx.Done():
			return false
		case <-time.After(pollInterval):
		}
	}

	return true
}

// clusterName returns the cluster_name for the PostgreSQL on a data directory, which is unique to
// the directory. All its processes show it: the postmaster in its arguments, the others in their
// titles. The working directory would also identify them, but root in a container may not be
// allowed to read another user's.
func clusterName(data fs.FileInfo) string {
	stat := data.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("socle-%x-%x", stat.Dev, stat.Ino)
}

// isProcessOf reports whether the process pid belongs to the PostgreSQL with that cluster_name.
// Without /proc it reports whether any such process exists.
func isProcessOf(pid int, clusterName string) bool {
	if _, err := os.Stat("/proc/self"); err != nil {
		return syscall.Kill(pid, 0) == nil
	}

	proc := filepath.Join("/proc", strconv.Itoa(pid))
	name, err := os.ReadFile(filepath.Join(proc, "comm"))
	if err != nil || string(name) != "postgres\n" {
		return false
	}

	cmdline, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	return err == nil && (strings.HasPrefix(string(cmdline), "postgres: "+clusterName+": ") ||
		strings.Contains(string(cmdline), "cluster_name="+clusterName+"\x00"))
}

// killOrphans kills the backends that a dead postmaster left behind and waits until they are gone.
//
// Backends exit once they notice; one that is busy computing never does, and PostgreSQL does not
// start beside it. The postmaster itself kills backends like that after the crash of one of them:
// nothing committed is lost.
func killOrphans(ctx context.Context, clusterName string) error {
	for {
		remaining := 0
		entries, _ := os.ReadDir("/proc") // without /proc PostgreSQL refuses to start until they have exited
		for _, entry := range entries {
			pid, err := strconv.Atoi(entry.Name())
			if err != nil || !isProcessOf(pid, clusterName) {
				continue
			}

			remaining++
			_ = syscall.Kill(pid, syscall.SIGKILL) // fails if it has just exited
		}

		if remaining == 0 {
			return nil
		}
		if tick.Pause(ctx, pollInterval) != nil {
			return fmt.Errorf("%d processes of the previous PostgreSQL do not exit: %w", remaining, ctx.Err())
		}
	}
}
