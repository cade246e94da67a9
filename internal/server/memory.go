package server

import (
	"context"
	"os"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"

	"socle/internal/pgserver"
)

const (
	releaseEvery = 15 * time.Second
	releaseFrom  = 64 << 20 // bytes of memory without live objects
)

// boundMemory sets the soft limit of the process's memory to a quarter of the machine's, unless
// GOMEMLIMIT says otherwise.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(512<<20, pgserver.Memory()/4))
	}
}

// releaseMemory gives memory back to the system until ctx ends. The runtime collects garbage when the
// heap has doubled, or after two minutes, and returns the memory of a burst over many minutes.
func releaseMemory(ctx context.Context) error {
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}

		if live, unused := heap(); unused > releaseFrom && unused > live {
			debug.FreeOSMemory()
		}
	}
}

// heap returns the bytes that the last collection found in use, and those that the process has beyond
// them: garbage, and free memory that the system does not have back.
func heap() (live, unused uint64) {
	samples := []runtimemetrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
	}

	runtimemetrics.Read(samples)

	live = samples[0].Value.Uint64()
	var held uint64
	for _, s := range samples[1:] {
		held += s.Value.Uint64()
	}

	return live, held - min(live, held)
}
