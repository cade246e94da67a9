package pgserver

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// PrivateMemory returns a process's private memory in bytes, or 0 if unknown.
func PrivateMemory(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return 0
	}

	resident, _ := strconv.ParseInt(fields[1], 10, 64)
	shared, _ := strconv.ParseInt(fields[2], 10, 64)

	return (resident - shared) * int64(os.Getpagesize())
}

// limitMemory limits the memory of each process in the PostgreSQL that cmd starts, see
// [sessionMemory]. Shared memory does not count. Out of memory, the kernel then kills a session
// rather than the postmaster or Socle.
//
// A shell sets the limit: a limit on this process would also apply to Socle, and one set after the
// start would not apply to processes that PostgreSQL has already forked.
func limitMemory(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Env, "PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj", "PG_OOM_ADJUST_VALUE=500")

	script := fmt.Sprintf(`ulimit -d %d && exec "$0" "$@"`, sessionMemory(memory()))
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}
