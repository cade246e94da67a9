// Package timetable computes the due times of periodic jobs and applies retention rules to their
// results. It knows cron expressions, time zones and calendars, but no jobs.
package timetable

import (
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for machines without time zone data

	"github.com/socle-dev/socle/internal/fault"
)

// Timetable is a cron expression in a time zone, or an interval.
type Timetable struct {
	cron  cron
	every time.Duration // 0: the cron expression
	zone  *time.Location
}

// Parse parses a cron expression with five fields and an IANA time zone name. It fails with
// Unprocessable on the field cron or timezone.
func Parse(expression, timezone string) (Timetable, error) {
	c, err := parseCron(expression)
	if err != nil {
		return Timetable{}, err
	}

	zone, err := Zone(timezone)
	return Timetable{cron: c, zone: zone}, err
}

// maxSchedule is the maximum length of a schedule in bytes.
const maxSchedule = 255

// ParseSchedule parses what pg_cron takes: a cron expression with five fields, a word such as
// @daily, or an interval such as 30 seconds. It fails as [Parse] does. The function
// cron.check_schedule in project databases has the same rules.
func ParseSchedule(text, timezone string) (Timetable, error) {
	if len(text) > maxSchedule {
		return Timetable{}, invalidCron("must have at most %d bytes", maxSchedule)
	}

	parts := words(text)
	switch {
	case len(parts) == 1 && strings.EqualFold(parts[0], "@reboot"):
		return Timetable{}, invalidCron("cannot be @reboot: projects have no start of a server")
	case len(parts) == 1 && macros[strings.ToLower(parts[0])] != "":
		return Parse(macros[strings.ToLower(parts[0])], timezone)
	case len(parts) == 2 && slices.Contains([]string{"second", "seconds"}, strings.ToLower(parts[1])):
		seconds, err := number(parts[0], maxValueDigits)
		if err != nil || seconds < 1 || seconds > 59 {
			return Timetable{}, invalidCron("must have 1 to 59 seconds, or be a cron expression")
		}

		zone, err := Zone(timezone)
		return Timetable{every: time.Duration(seconds) * time.Second, zone: zone}, err
	}

	return Parse(text, timezone)
}

// Zone returns the time zone with a name. It fails with Unprocessable on the field timezone.
func Zone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	// LoadLocation accepts these for UTC and the server's zone
	if err != nil || name == "" || name == "Local" {
		return nil, fault.OnField(fault.Unprocessable, "timezone", "unknown_timezone",
			"must be the name of a time zone, such as Europe/Berlin or UTC").WithCause(err)
	}

	return zone, nil
}

// Next returns the first due time after another time, or the zero time if there is none. Matching
// uses wall clock time. A time that occurs twice, when clocks go back, counts once, at its first
// occurrence. A time that is skipped, when clocks go forward, is due at the change. So a daily job
// runs exactly once each day. An interval is due at its multiples, in absolute time.
func (t Timetable) Next(after time.Time) time.Time {
	if t.every > 0 {
		return after.Truncate(t.every).Add(t.every).UTC()
	}

	after = after.In(t.zone)
	for wall := wallClock(after); ; {
		wall = t.cron.next(wall)
		if wall.IsZero() {
			return wall
		}

		if at := t.instant(wall); at.After(after) {
			return at.UTC()
		}
	}
}

// wallClock returns t's wall clock time, as a time in UTC.
func wallClock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// instant returns the first instant with a wall clock time, or the clock change if clocks skip it.
func (t Timetable) instant(wall time.Time) time.Time {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, t.zone)
	start, end := near.ZoneBounds()

	var first time.Time
	for _, other := range []time.Time{near, start.Add(-time.Second), end} {
		_, offset := other.In(t.zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(t.zone)
		if wallClock(at).Equal(wall) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}

	switch {
	case !first.IsZero():
		return first
	case wallClock(near).After(wall):
		return start
	}

	return end
}
