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
	minUnusedHeap   = 16 << 20 // bytes
)

// limitMemory sets the process's soft memory limit to a quarter of the machine's memory, at least
// 512 MiB, unless GOMEMLIMIT is set.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(512<<20, pgserver.Memory()/4))
	}
}

// ReleaseMemory returns unused memory to the system until ctx ends. The runtime alone collects
// garbage when the heap has doubled or after two minutes, and returns a burst's memory over many
// minutes. It is for a process with one server: it collects the whole process's garbage.
func ReleaseMemory(ctx context.Context) {
	isWarm := false
	for range tick.Every(ctx, releaseInterval) {
		if !isWarm { // migrations leave buffers in pools, which the second collection empties
			runtime.GC()
			debug.FreeOSMemory()

			isWarm = true
		}

		if live, idle := heap(); idle > minUnusedHeap && idle > live {
			debug.FreeOSMemory()
		}
	}
}

// heap returns two byte counts: live after the last collection, and idle: not live but still held
// by the process (garbage and free memory).
func heap() (live, idle uint64) {
	samples := []runtimemetrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
	}

	runtimemetrics.Read(samples)

	live = samples[0].Value.Uint64()
	var total uint64
	for _, s := range samples[1:] {
		total += s.Value.Uint64()
	}

	return live, total - min(live, total)
}
