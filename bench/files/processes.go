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

// processTree returns a process and its children.
func processTree(parent int) []int {
	all := []int{parent}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, _ := os.ReadFile(name) // the process can have ended
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			all = append(all, pid)
		}
	}

	return all
}

// postgresProcesses returns the processes of the server's private PostgreSQL.
func (b *bench) postgresProcesses() []int {
	names, _ := filepath.Glob(filepath.Join(b.Config.DataDir, "*", "*", "postmaster.pid"))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		first, _, _ := strings.Cut(string(text), "\n")
		if pid, err := strconv.Atoi(first); err == nil {
			return processTree(pid)
		}
	}

	return nil
}

// processorTime returns the processor time of running processes, over all of their running threads.
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

// totalProcessorTime returns the processor time of this process, its ended children and the
// server's PostgreSQL.
func (b *bench) totalProcessorTime() (sum time.Duration) {
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
			for _, field := range fields[13:15] { // times of ended backends, in hundredths of a second
				n, _ := strconv.ParseInt(field, 10, 64)
				sum += time.Duration(n) * 10 * time.Millisecond
			}
		}
	}

	return sum
}

// peakRSS returns the peak resident memory of this process, in bytes.
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
