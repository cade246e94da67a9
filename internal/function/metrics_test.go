package function

import "testing"

func TestQuantile(t *testing.T) {
	t.Parallel()

	counts := make([]int64, len(durationBounds)+1)
	if got := quantile(counts, 0.5); got != 0 {
		t.Errorf("without calls: got %v", got)
	}

	counts[3] = 100 // from 5 to 10 ms
	for q, want := range map[float64]float64{0.5: 7.5, 0.99: 9.95, 1: 10} {
		if got := quantile(counts, q); got < want-0.01 || got > want+0.01 {
			t.Errorf("%v: got %v, want %v", q, got, want)
		}
	}

	counts[len(durationBounds)] = 900 // longer than the last bound
	if got, want := quantile(counts, 0.99), durationBounds[len(durationBounds)-1]; got != want {
		t.Errorf("beyond the last bound: got %v, want %v", got, want)
	}
	if got := quantile([]int64{10}, 0.5); got != 0.5 {
		t.Errorf("fewer intervals, of another release: got %v", got)
	}
}
