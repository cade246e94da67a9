package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecide(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 11, 27, 12, 30, 0, 0, time.UTC)
	at := func(hour, minute int) *time.Time {
		due := time.Date(2026, 11, 27, hour, minute, 0, 0, time.UTC)
		return &due
	}
	tomorrow := at(24+3, 0)
	requested := int64(7)

	// planned returns an active daily job.
	planned := func(due *time.Time, change ...func(*job)) job {
		j := job{Schedule: "0 3 * * *", Timezone: "UTC", Overlap: Skip, Active: true, IsPlanned: true, DueAt: due}
		for _, f := range change {
			f(&j)
		}

		return j
	}
	running := func(j *job) { j.IsRunning = true }
	queue := func(j *job) { j.Overlap = Queue }
	minutely := func(j *job) { j.Schedule = "* * * * *" }
	request := func(j *job) { j.QueuedRun = &requested }

	for name, test := range map[string]struct {
		job  job
		want decision
	}{
		"unplanned":         {job{Schedule: "0 3 * * *", Timezone: "UTC", Active: true}, decision{next: tomorrow}},
		"inactive":          {job{Schedule: "0 3 * * *", Timezone: "UTC"}, decision{}},
		"not due":           {planned(at(13, 0)), decision{keepsDue: true}},
		"due":               {planned(at(12, 30), minutely), decision{action: begin, next: at(12, 31)}},
		"late":              {planned(at(11, 45), minutely), decision{action: begin, next: at(12, 31)}},
		"many times late":   {planned(at(1, 0), minutely), decision{action: begin, next: at(12, 31)}},
		"an hour late":      {planned(at(3, 0)), decision{action: miss, next: tomorrow}},
		"in progress":       {planned(at(12, 30), minutely, running), decision{action: skip, next: at(12, 31)}},
		"queued":            {planned(at(12, 30), minutely, running, queue), decision{keepsDue: true}},
		"queued, then free": {planned(at(12, 28), minutely, queue), decision{action: begin, next: at(12, 31)}},
		"requested":         {planned(at(13, 0), request), decision{action: begin, keepsDue: true}},
		"requested, inactive": {job{Timezone: "UTC", IsPlanned: true, QueuedRun: &requested},
			decision{action: begin, keepsDue: true}},
		"requested in the run": {planned(at(13, 0), request, running), decision{keepsDue: true}},
		"never": {job{Schedule: "0 0 30 2 *", Timezone: "UTC", Active: true},
			decision{action: reject, reason: "the schedule never runs: cron matches no date"}},
		"no time zone": {job{Schedule: "0 3 * * *", Timezone: "Mars", Active: true}, decision{action: reject,
			reason: "the schedule never runs: timezone must be the name of a time zone, such as Europe/Berlin or UTC"}},
	} {
		got := test.job.decide(now)
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
