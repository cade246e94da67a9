package projectdb

import "testing"

func TestOvergrown(t *testing.T) {
	t.Parallel()

	p := &Project{}
	for n, step := range []struct {
		bytes, most     int64
		full, overgrown bool
	}{
		{10 * leeway, 20 * leeway, false, false},
		{30 * leeway, 20 * leeway, true, false}, // any growth between two measurements
		{31 * leeway, 20 * leeway, true, false},
		{31*leeway + 1, 20 * leeway, true, true},
		{25 * leeway, 20 * leeway, true, false},
		{27 * leeway, 20 * leeway, true, true}, // relative to the smallest size since it became full
		{19 * leeway, 20 * leeway, false, false},
		{23 * leeway, 20 * leeway, true, false},
		{23 * leeway, 30 * leeway, false, false},
	} {
		p.RecordSize(step.bytes, step.most)
		if p.OverQuota() != step.full || p.FarOverQuota() != step.overgrown {
			t.Errorf("step %d: got %v, %v, want %v, %v", n, p.OverQuota(), p.FarOverQuota(), step.full, step.overgrown)
		}
	}
}

// TestWrites checks that a database without writes is not measured again, unless PostgreSQL has no
// count of writes.
func TestWrites(t *testing.T) {
	t.Parallel()

	p := &Project{}
	for n, step := range []struct {
		writes int64
		want   bool
	}{{5, true}, {5, false}, {6, true}, {6, false}, {2, true}, {0, true}, {0, true}} {
		if got := p.RecordWrites(step.writes); got != step.want {
			t.Errorf("step %d: got %v, want %v", n, got, step.want)
		}
	}
}
