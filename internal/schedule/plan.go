package schedule

import (
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/timetable"
)

// maxDelay is how late a run may begin: after a server's absence, or a project's pause.
const maxDelay = time.Hour

// Overlap policies.
const (
	Skip  = "skip"
	Queue = "queue"
)

// job is a job as a look finds it: unplanned, due or requested.
type job struct {
	ID        int64
	Schedule  string
	Timezone  string
	Overlap   string
	Active    bool
	DueAt     *time.Time // nil: not computed yet, or never
	IsPlanned bool
	IsRunning bool
	QueuedRun *int64 // requested by a user
}

// action is what a look does for a job.
type action int

const (
	wait action = iota // nothing now
	begin
	skip
	miss
	reject // the schedule is none
)

// decision is the outcome of planning a job.
type decision struct {
	action action
	// next is the next due time, nil if there is none. It replaces the job's unless keepsDue.
	next     *time.Time
	keepsDue bool
	reason   string // for reject
}

// decide plans a job at a time.
func (j job) decide(now time.Time) decision {
	table, err := timetable.ParseSchedule(j.Schedule, j.Timezone)
	switch {
	case j.QueuedRun != nil && !j.IsRunning:
		return decision{action: begin, keepsDue: true}
	case err != nil:
		return decision{action: reject, reason: reasonOf(err)}
	}

	isDue := j.Active && j.DueAt != nil && !j.DueAt.After(now)
	switch {
	case !j.Active:
		return decision{}
	case j.IsPlanned && !isDue:
		return decision{keepsDue: true}
	case isDue && j.IsRunning && j.Overlap == Queue:
		return decision{keepsDue: true} // it is due until it runs, once for all its due times
	}

	d := decision{next: timeOf(table.Next(now))}
	switch {
	case !isDue:
		d.action = wait
	case isMissed(table, now):
		d.action = miss
	case j.IsRunning:
		d.action = skip
	default:
		d.action = begin
	}

	return d
}

// isMissed reports whether the last due time is too long ago.
func isMissed(table timetable.Timetable, now time.Time) bool {
	last := table.Next(now.Add(-maxDelay))
	return last.IsZero() || last.After(now)
}

// reasonOf returns a fault of a field in words.
func reasonOf(err error) string {
	if e := fault.Of(err); len(e.Fields) > 0 {
		return "the schedule never runs: " + e.Fields[0].Name + " " + e.Fields[0].Message
	}

	return "the schedule never runs"
}

// timeOf returns nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
