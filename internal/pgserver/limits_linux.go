package pgserver

import (
	"os"
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
