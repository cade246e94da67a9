package event

import (
	"testing"
)

func TestCursor(t *testing.T) {
	t.Parallel()

	from, _ := parseSnapshot("10:20:12,15")
	to, _ := parseSnapshot("16:30:16")
	for _, p := range []position{{from: from}, {from: from, to: to, xid: 12, seq: 7}} {
		got, epoch, ok := parseCursor(p.cursor("abc"))
		if !ok || epoch != "abc" || got.cursor("abc") != p.cursor("abc") {
			t.Errorf("got %v %s %v, want %v", got, epoch, ok, p)
		}
	}

	for xid, want := range map[uint64]bool{9: true, 12: false, 13: true, 15: false, 19: true, 20: false} {
		if from.sees(xid) != want {
			t.Errorf("transaction %d: got %v, want %v", xid, !want, want)
		}
	}
	for removed, want := range map[uint64]bool{9: false, 10: true, 11: true, 19: true, 30: true} {
		if from.mayMiss(removed) != want {
			t.Errorf("changes up to transaction %d: got %v, want %v", removed, !want, want)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("YWJjIDEwOjIwOjEyLDE1")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		p, epoch, ok := parseCursor(text)
		if !ok {
			return
		}
		again, epochAgain, ok := parseCursor(p.cursor(epoch))
		if !ok || epochAgain != epoch || again.from.text != p.from.text || again.to.text != p.to.text {
			t.Errorf("%q: got %v, want %v", text, again, p)
		}
	})
}
