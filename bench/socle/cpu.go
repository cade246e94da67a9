package socle

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processorTime is the processor time of a server. On a shared machine it is more reliable than
// wall time. It is zero without /proc.
func (t Target) processorTime() time.Duration {
	return processorTime(fmt.Sprintf("/proc/%d", t.PID()))
}

// postgresTime is the processor time of PostgreSQL.
func postgresTime(postmaster string) (used time.Duration) {
	for _, dir := range Children(postmaster) {
		used += processorTime(dir)
	}
	return used + endedChildrenTime(postmaster)
}

// endedChildrenTime is the processor time of a process's children that have ended.
func endedChildrenTime(parent string) (used time.Duration) {
	const user, system, tick = 13, 14, 10 * time.Millisecond // see proc_pid_stat(5)

	fields := statOf(filepath.Join("/proc", parent))
	if len(fields) <= system {
		return 0
	}

	for _, i := range []int{user, system} {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		used += time.Duration(n) * tick
	}

	return used
}

// statOf returns the fields of a process's stat from the state on.
func statOf(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return nil
	}

	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name can contain any byte
}

// processorTime is the processor time of a process's running threads.
func processorTime(dir string) (used time.Duration) {
	threads, _ := filepath.Glob(filepath.Join(dir, "task/*/schedstat"))
	for _, path := range threads {
		times, err := os.ReadFile(path)
		if err != nil {
			continue
		}

		first, _, _ := strings.Cut(string(times), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		used += time.Duration(n)
	}

	return used
}

// Children are the folders in /proc of a process's children.
func Children(parent string) (dirs []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if fields := statOf(dir); len(fields) >= 2 && fields[1] == parent {
			dirs = append(dirs, dir)
		}
	}

	return dirs
}

// FindPostmaster returns the process ID of the PostgreSQL with its data below a folder.
func FindPostmaster(dir string) (pid string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "postmaster.pid" {
			return err
		}

		text, err := os.ReadFile(path)
		pid, _, _ = strings.Cut(string(text), "\n")
		if err != nil {
			return err
		}

		return fs.SkipAll
	})
	if err == nil && pid == "" {
		err = fmt.Errorf("no PostgreSQL in %s", dir)
	}

	return pid, err
}
