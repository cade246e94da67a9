package form

import (
	"errors"
	"strings"
	"time"
)

// isoLayouts lists each type's accepted ISO 8601 layouts. Values in another format are stored in
// the first one. Times without a zone are UTC.
var isoLayouts = map[string][]string{
	"date":     {"2006-01-02"},
	"time":     {"15:04:05", "15:04"},
	"datetime": {"2006-01-02T15:04:05", "2006-01-02T15:04", time.RFC3339, "2006-01-02T15:04Z07:00"},
}

// layouts maps each type's date_format values to layouts for package time. Dates use one of three
// common orders, so that no format reads an ISO 8601 date as another day.
var layouts = func() map[string]map[string]string {
	all := map[string]map[string]string{"date": {}, "time": {}, "datetime": {}}
	goLayout := strings.NewReplacer("YYYY", "2006", "MM", "01", "DD", "02", "HH", "15", "hh", "03", "mm", "04", "ss",
		"05", "A", "PM")

	times := []string{"HH:mm", "HH:mm:ss", "hh:mm A", "hh:mm:ss A"}
	for _, clock := range times {
		all["time"][clock] = goLayout.Replace(clock)
	}

	for _, order := range [][]string{{"YYYY", "MM", "DD"}, {"DD", "MM", "YYYY"}, {"MM", "DD", "YYYY"}} {
		for _, separator := range []string{"-", "/", ".", " ", ""} {
			day := strings.Join(order, separator)
			all["date"][day] = goLayout.Replace(day)
			for _, clock := range times {
				all["datetime"][day+" "+clock] = goLayout.Replace(day + " " + clock)
				all["datetime"][day+"T"+clock] = goLayout.Replace(day + "T" + clock)
			}
		}
	}

	return all
}()

// formatSpelling normalizes the lower-case letters that other libraries use for year and day.
var formatSpelling = strings.NewReplacer("yyyy", "YYYY", "dd", "DD")

// layout returns the layout for the definition's date_format, or "" if it is absent or unknown.
func (d *Definition) layout() string {
	if d.DateFormat == nil {
		return ""
	}
	return layouts[d.Type][formatSpelling.Replace(*d.DateFormat)]
}

func (d *Definition) checkDates(p *problems) (earliest, latest *time.Time) {
	if d.DateFormat != nil && d.layout() == "" {
		p.add("date_format", "invalid_format", "must be a format of a "+d.Type+" such as "+exampleFormats[d.Type])
	}

	earliest = d.parseLimit(p, "start_date", &d.StartDate)
	latest = d.parseLimit(p, "end_date", &d.EndDate)
	if earliest != nil && latest != nil && earliest.After(*latest) {
		p.add("start_date", outOfRange, "must not be after end_date")
	}

	return earliest, latest
}

var exampleFormats = map[string]string{"date": "YYYY-MM-DD", "time": "HH:mm", "datetime": "YYYY-MM-DD HH:mm"}

var exampleValues = map[string]string{"date": "2026-12-31", "time": "13:30", "datetime": "2026-12-31T13:30"}

// parseLimit parses a limit and replaces it by the ISO 8601 form.
func (d *Definition) parseLimit(p *problems, member string, value **string) *time.Time {
	if *value == nil {
		return nil
	}

	isoDate, t, err := d.parseDate(**value)
	if err != nil {
		p.add(member, "invalid_format", err.Error())
		return nil
	}

	*value = &isoDate
	return &t
}

// parseDate parses a date in ISO 8601, which stays unchanged, or in the definition's format, which
// it converts to ISO 8601. Stored values thus survive a format change.
func (d *Definition) parseDate(value string) (isoDate string, t time.Time, err error) {
	for _, iso := range isoLayouts[d.Type] {
		if t, err := time.Parse(iso, value); err == nil && hasTwoDigitHour(value) {
			return value, t, nil
		}
	}

	noun := strings.Replace(d.Type, "datetime", "date and time", 1)
	if layout := d.layout(); layout != "" {
		// Formatting must restore the value: time.Parse accepts some fields with one digit less.
		if t, err := time.Parse(layout, value); err == nil && t.Format(layout) == value {
			return t.Format(isoLayouts[d.Type][0]), t, nil
		}
		return "", time.Time{}, errors.New("must be a " + noun + " in the format " + *d.DateFormat)
	}

	return "", time.Time{}, errors.New("must be a " + noun + " such as " + exampleValues[d.Type])
}

// hasTwoDigitHour reports whether the hour has two digits; time.Parse accepts one as well.
func hasTwoDigitHour(value string) bool {
	i := strings.IndexByte(value, ':')
	return i < 0 || i == len("15") || i == len("2006-01-02T15")
}
