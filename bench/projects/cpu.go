package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processor returns the processor time of Socle and its PostgreSQL, with ended backends. On a
// shared machine it is more reliable than wall time. It is zero without /proc.
func (b *bench) processor() (socle, postgres time.Duration) {
	socle, _ = processTimes(strconv.Itoa(b.process.PID()), 2)

	text, err := os.ReadFile(filepath.Join(b.dir, "data/postgres/data/postmaster.pid"))
	if err != nil {
		return socle, 0
	}

	postmaster, _, _ := strings.Cut(string(text), "\n")
	postgres, _ = processTimes(postmaster, 4)
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		pid := strings.Split(path, "/")[2]
		if _, parent := processTimes(pid, 2); parent == postmaster {
			postgres += threadTime(pid)
		}
	}

	return socle, postgres
}

// processTimes returns the user and system time of a process and its parent. With 4 fields the time
// includes ended children.
func processTimes(pid string, fields int) (used time.Duration, parent string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if err != nil {
		return 0, ""
	}

	// The name in parentheses can contain any byte; after it come the state and the parent.
	all := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(all) < 15 {
		return 0, ""
	}

	for _, field := range all[11 : 11+fields] {
		n, _ := strconv.ParseInt(field, 10, 64)
		used += time.Duration(n) * 10 * time.Millisecond
	}

	return used, all[1]
}

// threadTime returns the time of a single-threaded process. A clock tick of ten milliseconds would
// be longer than many backends run.
func threadTime(pid string) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%s/schedstat", pid)) // the process can have ended
	first, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.ParseInt(first, 10, 64)

	return time.Duration(n)
}
