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
