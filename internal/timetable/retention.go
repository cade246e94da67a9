package timetable

import (
	"slices"
	"time"
)

// Rules are a retention policy, which keeps whatever any of its rules selects.
type Rules struct {
	Last    int // the newest
	Daily   int // the newest per day, for the latest days that have any
	Weekly  int // the newest per week, from Monday
	Monthly int // the newest per month
}

// Keep reports for each time whether the rules keep it. Days, weeks and months begin by zone's
// clock. Without any rule it keeps everything.
func (r Rules) Keep(times []time.Time, zone *time.Location) []bool {
	keep := make([]bool, len(times))
	if r == (Rules{}) {
		for i := range keep {
			keep[i] = true
		}
		return keep
	}

	newest := make([]int, len(times))
	for i := range newest {
		newest[i] = i
	}

	slices.SortStableFunc(newest, func(a, b int) int { return times[b].Compare(times[a]) })

	for _, rule := range []struct {
		limit  int
		period func(nth int, t time.Time) [3]int
	}{
		{r.Last, func(nth int, _ time.Time) [3]int { return [3]int{nth} }},
		{r.Daily, func(_ int, t time.Time) [3]int { return [3]int{t.Year(), int(t.Month()), t.Day()} }},
		{r.Weekly, func(_ int, t time.Time) [3]int { year, week := t.ISOWeek(); return [3]int{year, week} }},
		{r.Monthly, func(_ int, t time.Time) [3]int { return [3]int{t.Year(), int(t.Month())} }},
	} {
		periods := map[[3]int]bool{}
		for nth, i := range newest {
			period := rule.period(nth, times[i].In(zone))
			if len(periods) < rule.limit && !periods[period] {
				periods[period], keep[i] = true, true
			}
		}
	}

	return keep
}
