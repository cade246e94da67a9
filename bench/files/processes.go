package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// family returns a process and its children.
func family(parent int) []int {
	all := []int{parent}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, _ := os.ReadFile(name) // it may be gone
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			all = append(all, pid)
		}
	}

	return all
}

// postgresProcesses returns those of the server's own PostgreSQL.
func (b *bench) postgresProcesses() []int {
	found, _ := filepath.Glob(filepath.Join(b.Config.DataDir, "*", "*", "postmaster.pid"))
	for _, name := range found {
		text, _ := os.ReadFile(name)
		first, _, _ := strings.Cut(string(text), "\n")
		if pid, err := strconv.Atoi(first); err == nil {
			return family(pid)
		}
	}

	return nil
}

// processorTime returns what processes that live have had of a processor, all of their threads that live included.
func processorTime(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, name := range threads {
			text, _ := os.ReadFile(name)
			on, _, _ := strings.Cut(string(text), " ")
			n, _ := strconv.ParseInt(on, 10, 64)
			sum += time.Duration(n)
		}
	}

	return sum
}

// allTime returns what this process, its children that have ended and the server's PostgreSQL have had of a processor.
func (b *bench) allTime() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}

	processes := b.postgresProcesses()
	sum += processorTime(processes)
	if len(processes) > 0 {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", processes[0]))
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 14 {
			for _, field := range fields[13:15] { // of backends that have ended, in hundredths of a second
				n, _ := strconv.ParseInt(field, 10, 64)
				sum += time.Duration(n) * 10 * time.Millisecond
			}
		}
	}

	return sum
}

// peakRSS returns the most bytes of memory that this process has had at once.
func peakRSS() int64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}

	n, _ := strconv.ParseInt(fields[0], 10, 64)
	return n << 10
}
