package cli

import (
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	usualPercent = 100      // garbage that the collector lets lie about, in percent of what is in use
	moreGarbage  = 16 << 20 // bytes of it beyond that, while there is much
	paceEvery    = 5 * time.Second
)

// pacer says how much garbage may lie about. A server has little in use, and while many ask it the collector would run several times a
// second for the sake of a few megabytes: they are granted then, and nothing is while few ask.
type pacer struct {
	cycles uint64 // of the collector, at the last look
	busy   bool
}

// percent is told how often the collector has run since the start, and how many bytes it found in use.
func (p *pacer) percent(cycles, used uint64) int {
	since := cycles - p.cycles
	p.cycles = cycles
	p.busy = since > 1 || p.busy && since == 1
	if !p.busy || used == 0 {
		return usualPercent
	}
	return usualPercent + int(100*moreGarbage/used)
}

// paceCollector has the collector paced until stop is called. Where GOGC says how, nothing is done; GOMEMLIMIT holds in any case.
func paceCollector(environ []string) (stop func()) {
	if slices.ContainsFunc(environ, func(s string) bool { return strings.HasPrefix(s, "GOGC=") }) {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer debug.SetGCPercent(usualPercent)
		tick := time.NewTicker(paceEvery)
		defer tick.Stop()
		look := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}}
		metrics.Read(look)
		p, percent := pacer{cycles: look[0].Value.Uint64()}, usualPercent
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			metrics.Read(look)
			if next := p.percent(look[0].Value.Uint64(), look[1].Value.Uint64()); next != percent {
				debug.SetGCPercent(next)
				percent = next
			}
		}
	})
	return func() { close(done); wg.Wait() }
}
