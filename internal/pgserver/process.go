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
)

// postmaster is PostgreSQL's first process: a child of ours, or an adopted one.
type postmaster struct {
	pid  int
	mark string        // of its processes: see mark
	done chan struct{} // closed when our child has ended; nil if it is not our child
}

// alive reports whether the process has not ended.
func (p *postmaster) alive() bool {
	if p.done == nil {
		return serves(p.pid, p.mark)
	}

	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// shutdown ends PostgreSQL: fast, and without a checkpoint if ctx or the patience with that ends.
func (p *postmaster) shutdown(ctx context.Context) error {
	fast, cancel := context.WithTimeout(ctx, fastStop)
	defer cancel()

	if p.end(fast, syscall.SIGINT) {
		return nil
	}

	immediate, cancel := context.WithTimeout(context.WithoutCancel(ctx), immediateStop)
	defer cancel()

	if p.end(immediate, syscall.SIGQUIT) {
		return nil
	}

	return fmt.Errorf("process %d does not end", p.pid)
}

// end sends the process a signal and reports whether it has ended before ctx.
func (p *postmaster) end(ctx context.Context, signal syscall.Signal) bool {
	if !p.alive() {
		return true
	}

	_ = syscall.Kill(p.pid, signal) // fails if it has just ended

	for p.alive() {
		select {
		case <-p.done:
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}

	return true
}

// mark returns the cluster's name that all processes of the PostgreSQL in a data directory show: the first one in its arguments, the
// others in their titles. No other directory has the same, not even a copy. The working directory would tell too, and root in
// a container may not look at that of another account's process.
func mark(data fs.FileInfo) string {
	stat := data.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("socle-%x-%x", stat.Dev, stat.Ino)
}

// serves reports whether process pid is of the PostgreSQL with that mark. Where there is no
// /proc to see it in, any process will do.
func serves(pid int, mark string) bool {
	if _, err := os.Stat("/proc/self"); err != nil {
		return syscall.Kill(pid, 0) == nil
	}

	proc := filepath.Join("/proc", strconv.Itoa(pid))
	name, err := os.ReadFile(filepath.Join(proc, "comm"))
	if err != nil || string(name) != "postgres\n" {
		return false
	}

	shown, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	return err == nil && (strings.HasPrefix(string(shown), "postgres: "+mark+": ") ||
		strings.Contains(string(shown), "cluster_name="+mark+"\x00"))
}

// expel kills the processes that a dead postmaster left behind, and waits until they are gone. They
// leave by themselves once they notice; one that is busy computing never does, and PostgreSQL does
// not start beside it. Killing them is what the postmaster does when one of them dies: nothing committed is lost.
func expel(ctx context.Context, mark string) error {
	for {
		left := 0
		entries, _ := os.ReadDir("/proc") // where there is none, PostgreSQL refuses to start until they have left
		for _, entry := range entries {
			pid, err := strconv.Atoi(entry.Name())
			if err != nil || !serves(pid, mark) {
				continue
			}

			left++
			_ = syscall.Kill(pid, syscall.SIGKILL) // fails if it has just left
		}

		if left == 0 {
			return nil
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("%d processes of the PostgreSQL before do not end: %w", left, ctx.Err())
		}
	}
}
