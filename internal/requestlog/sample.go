package requestlog

import (
	"time"

	"github.com/google/uuid"
)

const (
	maxSuccesses = 100 // successful requests kept per project and second

	rowSize    = 200 // estimated bytes of a row without its texts
	maxRowSize = rowSize + maxQuery + maxMessage + 3*maxTarget
	burstShare = 24 // parts of a day's bound; a project can write one at once
)

// sample decides which requests of a project are kept. Ten thousand successful requests per second
// would fill a disk in days and tell no more than a hundred.
//
// Each project also has a bound of bytes, as a token bucket: it is full after an hour and holds an
// hour's share of a day's bytes. Successful requests take the upper half of the bucket only, so
// that a project over its bound still keeps failures.
type sample struct {
	perDay     int64 // bytes of a project
	allowances map[uuid.UUID]*allowance
	refilled   time.Time
}

// allowance is what a project may still keep.
type allowance struct {
	used      int64 // bytes of the bucket
	successes int   // since the last tick
}

func newSample(perDay int64) sample {
	return sample{perDay: perDay, allowances: map[uuid.UUID]*allowance{}}
}

// take reports whether a request of size bytes is kept.
func (s *sample) take(project uuid.UUID, size int64, failed bool) bool {
	a := s.allowances[project]
	if a == nil {
		a = &allowance{}
		s.allowances[project] = a
	}

	burst := s.perDay / burstShare
	if !failed {
		burst /= 2
		if a.successes >= maxSuccesses {
			return false
		}
		a.successes++
	}

	if a.used+size > burst {
		return false
	}

	a.used += size
	return true
}

// refill begins a new second. It adds the share of the time since the last call to all buckets.
func (s *sample) refill(now time.Time) {
	const day = 24 // hours
	share := int64(float64(s.perDay) * now.Sub(s.refilled).Hours() / day)
	if s.refilled.IsZero() {
		share = 0
	}
	s.refilled = now

	for project, a := range s.allowances {
		a.used, a.successes = max(a.used-share, 0), 0
		if a.used == 0 {
			delete(s.allowances, project)
		}
	}
}
