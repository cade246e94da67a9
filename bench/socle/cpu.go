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
	return used
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
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}

		// The name in parentheses can contain any byte; after it come the state and the parent.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) >= 2 && string(fields[1]) == parent {
			dirs = append(dirs, filepath.Dir(path))
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
