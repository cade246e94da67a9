//go:build !linux

package pgserver

import "os/exec"

// PrivateMemory returns 0, which means unknown.
func PrivateMemory(int) int64 { return 0 }

// limitMemory does nothing: it needs Linux limits.
func limitMemory(*exec.Cmd) {}
