//go:build amd64 || arm64

package sandbox

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSeccompFilter: the filter fits into the kernel's limit, and neither allows a call twice nor
// one that has a rule.
func TestSeccompFilter(t *testing.T) {
	t.Parallel()

	filter, err := seccompFilter()
	if err != nil {
		t.Fatal(err)
	}

	const maxInstructions = 4096
	if len(filter) > maxInstructions {
		t.Errorf("%d instructions", len(filter))
	}

	sorted := slices.Sorted(slices.Values(allowedCalls))
	if len(slices.Compact(sorted)) != len(allowedCalls) {
		t.Error("a call is listed twice")
	}

	for _, ruled := range []uint32{unix.SYS_CLONE, unix.SYS_SOCKET, unix.SYS_PRCTL, unix.SYS_IOCTL, unix.SYS_MMAP} {
		if slices.Contains(allowedCalls, ruled) {
			t.Errorf("call %d is allowed whatever its arguments", ruled)
		}
	}
}
