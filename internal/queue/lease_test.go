package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestLease ends jobs on a server that is cut off, and those alone.
func TestLease(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var l lease
		early, cancel := l.bind(t.Context()) // before the lock
		defer cancel()

		l.renew()
		job, cancel := l.bind(t.Context())
		defer cancel()

		l.lose()
		time.Sleep(absenceTimeout - time.Millisecond)
		l.lose()
		l.renew()
		time.Sleep(time.Hour)
		synctest.Wait()
		if job.Err() != nil {
			t.Error("the job ended although the lock was acquired again in time")
		}

		l.lose()
		time.Sleep(time.Millisecond)
		l.lose() // does not begin the time anew
		time.Sleep(absenceTimeout)
		synctest.Wait()
		if !errors.Is(context.Cause(job), ErrCutOff) || early.Err() != nil {
			t.Errorf("got %v, %v", context.Cause(job), early.Err())
		}

		l.renew()
		if next, cancel := l.bind(t.Context()); next.Err() != nil {
			t.Error("a job ends after the lock was acquired again")
		} else {
			cancel()
		}
	})
}
