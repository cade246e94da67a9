// Package timetable says when something is due that is done again and again, and what is kept of what was made at such times. It knows
// cron expressions, time zones and calendars, and neither what is done nor who does it.
package timetable

import (
	"time"
	_ "time/tzdata" // for machines that know no time zones

	"socle/internal/fault"
)

// Timetable is when something is due.
type Timetable struct {
	cron cron
	zone *time.Location
}

// Parse reads a cron expression of five fields, and the name of a time zone of the IANA's database. It fails with Unprocessable, on the
// field cron or timezone.
func Parse(expression, timezone string) (Timetable, error) {
	c, err := parseCron(expression)
	if err != nil {
		return Timetable{}, err
	}

	zone, err := Zone(timezone)
	return Timetable{c, zone}, err
}

// Zone returns the time zone of a name. It fails with Unprocessable, on the field timezone.
func Zone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" { // which is the server's own, and no name
		return nil, fault.OnField(fault.Unprocessable, "timezone", "unknown_timezone",
			"must be the name of a time zone, such as Europe/Berlin or UTC").Because(err)
	}

	return zone, nil
}

// Next returns the first moment after another one at which something is due, or the zero time if there is none. It goes by what a clock on
// the wall shows. What that shows twice, when it is put back, counts the first time; what it skips, when it is put
// forward, counts as the moment in which that is done. So what is due daily is done once on each day.
func (t Timetable) Next(after time.Time) time.Time {
	after = after.In(t.zone)
	for shown := reading(after); ; {
		shown = t.cron.next(shown)
		if shown.IsZero() {
			return shown
		}

		if at := t.moment(shown); at.After(after) {
			return at.UTC()
		}
	}
}

// reading returns what a clock shows, as if it were in UTC.
func reading(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// moment returns the first moment in which a clock shows this, or shows more for the first time if it never shows this.
func (t Timetable) moment(shown time.Time) time.Time {
	near := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), 0, t.zone)
	start, end := near.ZoneBounds()

	var first time.Time
	for _, other := range []time.Time{near, start.Add(-time.Second), end} {
		_, offset := other.In(t.zone).Zone()
		at := shown.Add(-time.Duration(offset) * time.Second).In(t.zone)
		if reading(at).Equal(shown) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}

	switch {
	case !first.IsZero():
		return first
	case reading(near).After(shown):
		return start
	}

	return end
}
