package timetable

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/fault"
)

// field is the value range of a cron expression's field.
type field struct {
	name     string
	min, max int
	names    []string // value names, from min on
	hasLast  bool     // $ is the last value
}

var fields = [...]field{
	{name: "minute", max: 59},
	{name: "hour", max: 23},
	{name: "day of the month", min: 1, max: 31, hasLast: true},
	{name: "month", min: 1, max: 12,
		names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	// 7 means Sunday too
	{name: "day of the week", max: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// lastDay is the member of the days of the month for $.
const lastDay = 0

// macros are the expressions for the words of pg_cron.
var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// set is a set of numbers up to 63.
type set uint64

func (s set) has(n int) bool { return s&(1<<n) != 0 }

// cron is a parsed cron expression.
type cron struct {
	minutes, hours, days, months, weekdays set
	// A day must match days and weekdays, since one of these fields starts with *.
	requireBoth bool
}

// parseCron parses a cron expression. It fails with Unprocessable on the field cron.
func parseCron(text string) (cron, error) {
	parts := words(text)
	if len(parts) != len(fields) {
		return cron{}, invalidCron(
			"must have five fields (minute, hour, day of the month, month, day of the week), has %d", len(parts),
		)
	}

	var sets [len(fields)]set
	for i, f := range fields {
		var err error
		if sets[i], err = f.parse(parts[i]); err != nil {
			return cron{}, invalidCron("has an invalid %s: %s", f.name, err)
		}
	}

	c := cron{
		sets[0], sets[1], sets[2], sets[3], sets[4], strings.HasPrefix(parts[2], "*") ||
			strings.HasPrefix(parts[4], "*"),
	}
	if c.weekdays.has(7) {
		c.weekdays |= 1
	}

	if c.next(time.Now().UTC()).IsZero() {
		return cron{}, invalidCron("matches no date")
	}

	return c, nil
}

// words splits a text at white space of ASCII.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r", r) })
}

func invalidCron(format string, args ...any) error {
	return fault.OnField(fault.Unprocessable, "cron", "invalid_cron", format, args...)
}

// parse parses a field: values and ranges, with optional steps, separated by commas. Its errors are
// texts for the client.
func (f field) parse(text string) (set, error) {
	var all set
	for item := range strings.SplitSeq(text, ",") {
		if item == "$" && f.hasLast {
			all |= 1 << lastDay
			continue
		}

		span, every, hasStep := strings.Cut(item, "/")
		step := 1
		if hasStep {
			var err error
			if step, err = number(every, maxStepDigits); err != nil || step < 1 {
				return 0, fmt.Errorf("%q is not a valid step", item)
			}
		}

		from, to, isRange := strings.Cut(span, "-")
		low, high := f.min, f.max
		if span != "*" {
			var err error
			if low, err = f.value(from); err != nil {
				return 0, err
			}

			switch {
			case isRange:
				if high, err = f.value(to); err != nil {
					return 0, err
				}
			case !hasStep:
				high = low
			}
		}

		if low > high {
			return 0, fmt.Errorf("the range %q is reversed", span)
		}

		for n := low; n <= high; n += step {
			all |= 1 << n
		}
	}

	return all, nil
}

// value parses a number or a name.
func (f field) value(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.min + i, nil
	}

	n, err := number(text, maxValueDigits)
	if err != nil || n < f.min || n > f.max {
		return 0, fmt.Errorf("%q is not a value from %d to %d", text, f.min, f.max)
	}

	return n, nil
}

// Digits of a value and of a step. A step can be larger than its field, as in pg_cron: then only
// the first value matches.
const maxValueDigits, maxStepDigits = 2, 4

// number parses a number without a sign.
func number(text string, digits int) (int, error) {
	if len(text) > digits || strings.ContainsAny(text, "+-") {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(text)
}

// searchDays bounds the search for a matching day. Leap days on one day of the week can be forty
// years apart.
const searchDays = 41 * 366

// next returns the first matching minute after a wall clock time, or the zero time if none matches
// within [searchDays].
func (c cron) next(wall time.Time) time.Time {
	at := wall.Truncate(time.Minute).Add(time.Minute)
	for end := at.AddDate(0, 0, searchDays); at.Before(end); {
		switch {
		case !c.matchesDay(at):
			at = time.Date(at.Year(), at.Month(), at.Day()+1, 0, 0, 0, 0, time.UTC)
		case !c.hours.has(at.Hour()):
			at = at.Truncate(time.Hour).Add(time.Hour)
		case !c.minutes.has(at.Minute()):
			at = at.Add(time.Minute)
		default:
			return at
		}
	}

	return time.Time{}
}

// matchesDay reports whether the expression matches a day.
func (c cron) matchesDay(day time.Time) bool {
	isLast := day.AddDate(0, 0, 1).Day() == 1
	ofMonth := c.days.has(day.Day()) || (isLast && c.days.has(lastDay))
	ofWeek := c.weekdays.has(int(day.Weekday()))

	return c.months.has(int(day.Month())) && ((ofMonth && ofWeek) || (!c.requireBoth && (ofMonth || ofWeek)))
}
