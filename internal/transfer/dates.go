package transfer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// localDate matches dates with the year last, which PostgreSQL would read month first.
var localDate = regexp.MustCompile(`^ *([0-9]{1,2})([./-])([0-9]{1,2})[./-]([0-9]+)(.*)$`)

// parsedDate is a date with the year last.
type parsedDate struct {
	first, second int // month and day, in either order
	year          string
	rest          string // a time
}

// parseLocalDate reads a date with the year last; local is false for any other text. valid is false
// for a two-digit year and for a day that no reading has.
func parseLocalDate(text string) (d parsedDate, local, valid bool) {
	if text == "" || len(text) > 64 || text[0] > '9' {
		return d, false, false
	}

	m := localDate.FindStringSubmatch(text)
	if m == nil {
		return d, false, false
	}

	first, _ := strconv.Atoi(m[1]) // two digits
	second, _ := strconv.Atoi(m[3])
	d = parsedDate{first: first, second: second, year: m[4], rest: m[5]}

	return d, true, len(m[4]) == 4 && m[4] != "0000" && (d.in(dayFirst) != "" || d.in(monthFirst) != "")
}

// hasShortYear reports whether a date has a two-digit year, whose century is unclear.
func (d parsedDate) hasShortYear() bool {
	low, high := min(d.first, d.second), max(d.first, d.second)
	return len(d.year) == 2 && low >= 1 && low <= 12 && high <= 31
}

// in returns the date in a reading, by ISO 8601; "" if that does not read it. Alone, a date has one
// meaning if its day is beyond 12 or equals its month.
func (d parsedDate) in(r reading) string {
	switch r {
	case dayFirst:
		return d.iso(d.second, d.first)
	case monthFirst:
		return d.iso(d.first, d.second)
	}

	byDay, byMonth := d.in(dayFirst), d.in(monthFirst)
	switch {
	case byMonth == "", byDay == byMonth:
		return byDay
	case byDay == "":
		return byMonth
	}

	return ""
}

func (d parsedDate) iso(month, day int) string {
	date := fmt.Sprintf("%s-%02d-%02d", d.year, month, day)
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return ""
	}

	return date + d.rest
}

var timeLayouts = []struct {
	kind   typeSet
	layout string
}{
	{timestamp, "2006-01-02 15:04:05"}, {timestamp, "2006-01-02 15:04"},
	{timestamptz, "2006-01-02 15:04:05Z07:00"}, {timestamptz, "2006-01-02 15:04:05Z07"},
	{timestamptz, "2006-01-02 15:04Z07:00"},
}

// timeTypes detects dates and times in ISO 8601's unambiguous formats. A date is a timestamp too,
// at midnight, but no timestamptz: its meaning would depend on a time zone.
func timeTypes(text string) typeSet {
	if len(text) < 10 || text[4] != '-' || text[7] != '-' {
		return 0
	}
	if len(text) == 10 {
		if _, err := time.Parse(time.DateOnly, text); err != nil || strings.HasPrefix(text, "0000") {
			return 0
		}
		return date | timestamp
	}

	if text[10] == 'T' {
		text = text[:10] + " " + text[11:]
	}

	if i := strings.IndexByte(text, '.'); i >= 0 && len(text) > i+7 && text[i+7] >= '0' && text[i+7] <= '9' {
		return 0 // finer than a microsecond
	}

	for _, c := range timeLayouts {
		if t, err := time.Parse(c.layout, text); err == nil && t.Year() > 0 {
			return c.kind
		}
	}

	return 0
}
