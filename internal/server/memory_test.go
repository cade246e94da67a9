package server

import (
	"runtime"
	"testing"
)

// TestHeap checks that garbage counts as unused memory and live objects do not.
func TestHeap(t *testing.T) { // not parallel: it measures the whole process
	const size = 256 << 20
	block := make([]byte, size)
	runtime.GC()

	live, _ := heap()
	if live < size {
		t.Errorf("%d bytes are live, of a block of %d", live, size)
	}

	runtime.KeepAlive(block)
	block = nil
	_, before := heap()
	runtime.GC()

	after, unused := heap()
	if after > live-size/2 || unused < size/2 {
		t.Errorf("after the block, %d bytes are live, and %d unused (%d before)", after, unused, before)
	}
}
