package pgserver

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// OwnMemory returns the bytes of memory that a process has for itself, 0 if that is not known.
func OwnMemory(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return 0
	}

	resident, _ := strconv.ParseInt(fields[1], 10, 64)
	shared, _ := strconv.ParseInt(fields[2], 10, 64)

	return (resident - shared) * int64(os.Getpagesize())
}

// boundMemory bounds the memory of each process of the PostgreSQL that cmd starts, see
// [sessionMemory], and makes the kernel, when it is out of memory, kill a session rather than the
// postmaster or Socle. Shared memory does not count. The shell sets the limit, since one of this
// process would be Socle's too, and one that is set later is missing in what PostgreSQL has forked.
func boundMemory(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Env, "PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj", "PG_OOM_ADJUST_VALUE=500")

	script := fmt.Sprintf(`ulimit -d %d && exec "$0" "$@"`, sessionMemory(memory()))
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}
