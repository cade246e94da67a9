package requestlog

import (
	"time"

	"github.com/google/uuid"
)

const (
	maxSuccesses = 100 // successful requests kept per project and second

	rowSize    = 200 // estimated bytes per row, without its texts
	maxRowSize = rowSize + maxQuery + maxMessage + 3*maxTarget
	burstShare = 24 // a project may write one such share of its daily bound at once
)

// sample decides which of a project's requests are logged. Ten thousand successful requests per
// second would fill a disk in days and tell no more than a hundred.
//
// A token bucket also bounds each project's bytes: it fills in an hour and holds an hour's share of
// the daily bytes. Successful requests take only its upper half, so that a project over its bound
// still logs failures.
type sample struct {
	perDay     int64 // bytes per project
	allowances map[uuid.UUID]*allowance
	lastRefill time.Time
}

// allowance is a project's bucket.
type allowance struct {
	bytes     int64 // taken from the bucket
	successes int   // since the last tick
}

func newSample(perDay int64) sample {
	return sample{perDay: perDay, allowances: map[uuid.UUID]*allowance{}}
}

// take reports whether to log a request with size bytes.
func (s *sample) take(project uuid.UUID, size int64, isFailure bool) bool {
	a := s.allowances[project]
	if a == nil {
		a = &allowance{}
		s.allowances[project] = a
	}

	burst := s.perDay / burstShare
	if !isFailure {
		burst /= 2
		if a.successes >= maxSuccesses {
			return false
		}
		a.successes++
	}

	if a.bytes+size > burst {
		return false
	}

	a.bytes += size
	return true
}

// refill begins a new second. It adds the share for the time since the last call to all buckets.
func (s *sample) refill(now time.Time) {
	const day = 24 // hours
	share := int64(float64(s.perDay) * now.Sub(s.lastRefill).Hours() / day)
	if s.lastRefill.IsZero() {
		share = 0
	}
	s.lastRefill = now

	for project, a := range s.allowances {
		a.bytes, a.successes = max(a.bytes-share, 0), 0
		if a.bytes == 0 {
			delete(s.allowances, project)
		}
	}
}
