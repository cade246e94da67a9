package cli

import "testing"

func TestPacer(t *testing.T) {
	t.Parallel()
	var p pacer
	for i, look := range []struct {
		cycles, used uint64
		want         int
	}{
		{0, 0, 100},
		{1, 16 << 20, 100}, // nobody asks
		{2, 16 << 20, 100},
		{9, 16 << 20, 200},
		{10, 16 << 20, 200}, // as it runs less often
		{11, 8 << 20, 300},
		{11, 8 << 20, 100},
		{12, 8 << 20, 100},
		{20, 160 << 20, 110},
		{30, 0, 100},
	} {
		if got := p.percent(look.cycles, look.used); got != look.want {
			t.Errorf("look %d: %d percent, want %d", i, got, look.want)
		}
	}
}
