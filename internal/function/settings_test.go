package function

import (
	"math"
	"testing"
)

// TestLimitBounds: a limit that is not set is the default, and none is beyond what an administrator
// can set.
func TestLimitBounds(t *testing.T) {
	t.Parallel()

	const least, most = math.MinInt32, math.MaxInt32
	for set, want := range map[Limits]Limits{
		{}: defaultLimits,
		{MemoryMB: 512, CPUMilliseconds: 100, AnswerSeconds: 10, WallSeconds: 20, Concurrency: 2, BodyMB: 3,
			Processes: 4, MailPorts: true}: {512, 100, 10, 20, 2, 3, 4, true},
		{MemoryMB: most, CPUMilliseconds: most, AnswerSeconds: most, WallSeconds: most, Concurrency: most, BodyMB: most,
			Processes: most}: {2048, 60_000, 900, 3600, 128, 200, 16, false},
		{MemoryMB: least, CPUMilliseconds: least, AnswerSeconds: least, WallSeconds: least, Concurrency: least,
			BodyMB: least, Processes: least}: {64, 50, 1, 1, 1, 1, 1, false},
	} {
		if got := set.withDefaults(); got != want {
			t.Errorf("%+v: got %+v, want %+v", set, got, want)
		}
	}
}

// TestPlaces: a process has places for its memory, as far as its project has them.
func TestPlaces(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		processes, memoryMB int
		want                int64
	}{{0, 64, 1}, {0, 256, 1}, {0, 257, 2}, {0, 2048, 8}, {8, 2048, 2}, {1024, 2048, 8}} {
		if got := New(Config{Processes: tt.processes}).placesOf(tt.memoryMB); got != tt.want {
			t.Errorf("%d MB of %d processes: got %d places, want %d", tt.memoryMB, tt.processes, got, tt.want)
		}
	}
}
