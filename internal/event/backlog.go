package event

import (
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

// Memory of the changes that followers have not taken. A follower needs no share of it for
// freeBacklog, and then one per backlogStep; it shares the rows themselves with others. A follower
// that reads the log has a share for its page.
const (
	maxBacklogs    = 256 << 20 // all followers together
	freeBacklog    = 16 << 10
	backlogStep    = 16 << 10
	changeCost     = 256 // bytes of a change beside its row
	pageCost       = 2 * maxPageBytes
	maxPageReaders = 100_000          // that wait for their share
	pageTimeout    = 10 * time.Second // for their share
)

func newBacklogs() *fair.Pool {
	return fair.New(fair.Config{Name: "change_backlogs", Capacity: maxBacklogs, PerAccount: maxBacklogs / 2,
		PerPart: maxBacklogs / 4, Reserve: maxBacklogs / 4, Waiting: maxPageReaders, Timeout: pageTimeout})
}

var errNoBacklog = fault.New(fault.Unavailable, "too many changes wait for slow clients").WithCode("too_busy")

// grow takes shares of memory for a queue with a number of bytes. It takes none and reports false
// if there are too few.
func (f *Follower) grow(size int) bool {
	missing := size - freeBacklog - f.leased
	if missing <= 0 {
		return true
	}

	steps := (missing + backlogStep - 1) / backlogStep
	lease := f.log.logs.backlogs.TryAcquire(f.share, int64(steps*backlogStep))
	if lease == nil {
		return false
	}

	f.leases = append(f.leases, lease)
	f.leased += steps * backlogStep
	return true
}

// hold accounts for changes that the follower has read by itself, until the next call of Next.
func (f *Follower) hold(changes []Change) {
	size := 0
	for i := range changes {
		size += changeCost + len(changes[i].Record) + len(changes[i].Old)
	}
	if size <= freeBacklog {
		return
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	f.taken = append(f.taken, f.log.logs.backlogs.Take(f.share, int64(size)))
}

func releaseAll(leases []*fair.Lease) {
	for _, l := range leases {
		l.Release()
	}
}
