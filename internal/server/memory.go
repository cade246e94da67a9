package server

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	releaseInterval = 15 * time.Second
	minUnusedHeap   = 16 << 20 // bytes of unused heap
)

// limitMemory sets the soft memory limit of the process to a quarter of the machine's memory, at
// least 512 MiB, unless GOMEMLIMIT is set.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(512<<20, pgserver.Memory()/4))
	}
}

// ReleaseMemory returns unused memory to the system until ctx ends. The runtime alone collects
// garbage when the heap has doubled or after two minutes, and returns the memory of a burst over
// many minutes. It is for a process with one server: it collects the garbage of the whole process.
func ReleaseMemory(ctx context.Context) {
	started := false
	for range tick.Every(ctx, releaseInterval) {
		if !started { // migrations leave buffers in pools, which the second collection empties
			runtime.GC()
			debug.FreeOSMemory()

			started = true
		}

		if live, unused := heap(); unused > minUnusedHeap && unused > live {
			debug.FreeOSMemory()
		}
	}
}

// heap returns two numbers of bytes: live after the last collection, and unused by live objects but
// still owned by the process (garbage and free memory).
func heap() (live, unused uint64) {
	samples := []runtimemetrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
	}

	runtimemetrics.Read(samples)

	live = samples[0].Value.Uint64()
	var owned uint64
	for _, s := range samples[1:] {
		owned += s.Value.Uint64()
	}

	return live, owned - min(live, owned)
}
