package server

import (
	"runtime"
	"testing"
)

// TestHeap: memory that is garbage counts as unused, and memory in use does not.
func TestHeap(t *testing.T) { // not parallel: it looks at the whole process
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
