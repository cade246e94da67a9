package function

import "time"

const (
	idleTimeout  = time.Minute
	maxAge       = time.Hour
	maxServed    = 100_000
	drainTimeout = 30 * time.Second
	ownMemory    = 192 << 20 // resident bytes of Deno with its files, beside what the function may allocate
	maxRequests  = 5         // requests whose processor time a process may save up
)

// budget is the processor time that a worker may still use. Each request adds to it, up to a
// maximum, so that neither a loop nor the work of a timer goes on.
type budget struct {
	left, seen time.Duration
}

// begin starts the budget of a process that has used some time before. Each request may use a time
// on average.
func (b *budget) begin(used, request time.Duration) {
	b.grant(request)
	b.seen = used
}

func (b *budget) grant(request time.Duration) { b.left = min(b.left+request, maxRequests*request) }

// spend takes what was used since the last call. It reports whether something is left.
func (b *budget) spend(used time.Duration) bool {
	b.left -= used - b.seen
	b.seen = used

	return b.left >= 0
}

// check ends the processes beyond a limit, and forgets states that are old.
func (s *Service) check(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for k, st := range s.states {
		if now.Sub(st.at) > stateTTL {
			delete(s.states, k)
		}
	}

	for w := range s.all {
		w.checkLocked(now)
	}

	s.rates.sweep(now)
}

func (w *worker) checkLocked(now time.Time) {
	select {
	case <-w.ready:
	default:
		return // it starts, which has its own timeout
	}

	if w.err != nil {
		if now.Sub(w.started) > bootErrorTTL {
			w.service.removeLocked(w)
		}

		return
	}

	usage, err := w.process.Usage()
	if used := usage.CPU - w.budget.seen; err == nil && used > 0 {
		w.service.tallies.add(w.project, w.key.name, tally{cpu: used})
	}

	switch {
	case err != nil: // it has ended
	case usage.Memory > int64(w.state.MemoryMB)<<20+ownMemory:
		w.killLocked("memory")
	case !w.budget.spend(usage.CPU):
		w.killLocked("processor time")
	case !w.drainedBy.IsZero():
		if now.After(w.drainedBy) {
			w.killLocked("draining took too long")
		}
	case w.served >= maxServed, now.Sub(w.started) > maxAge:
		w.drainLocked("age")
	case w.inFlight == 0 && now.Sub(w.lastUsed) > idleTimeout:
		w.endLocked("idle")
	}
}
