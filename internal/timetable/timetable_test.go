package timetable

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/fault"
)

const timeLayout = "2006-01-02 15:04 -0700"

// TestNext covers days with clock changes, and leap days.
func TestNext(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ cron, zone, after, want string }{
		{"30 2 * * *", "UTC", "2026-11-21 02:29 +0000", "2026-11-21 02:30 +0000, 2026-11-22 02:30 +0000"},
		{"30 2 * * *", "UTC", "2026-11-21 02:30 +0000", "2026-11-22 02:30 +0000"},
		{"0 3 * * 7", "Asia/Kolkata", "2026-11-21 00:00 +0000", "2026-11-22 03:00 +0530, 2026-11-29 03:00 +0530"},
		{"0 0 1 * MON", "UTC", "2026-11-21 00:00 +0000",
			"2026-11-23 00:00 +0000, 2026-11-30 00:00 +0000, 2026-12-01 00:00 +0000"},
		// the first Sunday
		{"0 0 1-7 * */7", "UTC", "2026-11-21 00:00 +0000", "2026-12-06 00:00 +0000, 2027-01-03 00:00 +0000"},
		{"5-10/5,50/4,59 8 * jan,MAR Sat-7", "UTC", "2026-11-21 00:00 +0000",
			"2027-01-02 08:05 +0000, 2027-01-02 08:10 +0000, 2027-01-02 08:50 +0000, 2027-01-02 08:54 +0000, 2027-01-02 08:58 +0000, 2027-01-02 08:59 +0000, 2027-01-03 08:05 +0000"},
		{"0 0 29 2 *", "UTC", "2096-02-29 00:00 +0000", "2104-02-29 00:00 +0000"},
		{"0 0 29 2 *", "UTC", "2026-11-21 00:00 +0000", "2028-02-29 00:00 +0000, 2032-02-29 00:00 +0000"},
		{"0 12 31 * *", "Europe/Berlin", "2026-01-01 00:00 +0000", "2026-01-31 12:00 +0100, 2026-03-31 12:00 +0200"},
		// clocks go forward: 02:30 does not occur on 29 March
		{"30 2 * * *", "Europe/Berlin", "2026-03-28 00:00 +0100",
			"2026-03-28 02:30 +0100, 2026-03-29 03:00 +0200, 2026-03-30 02:30 +0200"},
		{"*/20 * * * *", "Europe/Berlin", "2026-03-29 01:30 +0100",
			"2026-03-29 01:40 +0100, 2026-03-29 03:00 +0200, 2026-03-29 03:20 +0200"},
		{"0 2,3 * * *", "Europe/Berlin", "2026-03-29 01:30 +0100", "2026-03-29 03:00 +0200, 2026-03-30 02:00 +0200"},
		{"0 0 * * *", "Asia/Beirut", "2026-03-28 12:00 +0200", "2026-03-29 01:00 +0300, 2026-03-30 00:00 +0300"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00 +1030",
			"2026-10-04 02:30 +1100, 2026-10-05 02:15 +1100"},
		// clocks go back: 02:00 to 03:00 occurs twice on 25 October
		{"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00 +0200", "2026-10-25 02:30 +0200, 2026-10-26 02:30 +0100"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 02:10 +0100", "2026-10-26 02:30 +0100"},
		{"0 * * * *", "Europe/Berlin", "2026-10-25 01:00 +0200", "2026-10-25 02:00 +0200, 2026-10-25 03:00 +0100"},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00 +1100",
			"2026-04-05 01:45 +1100, 2026-04-06 01:45 +1030"},
		{"30 23 * * *", "America/Santiago", "2026-04-04 12:00 -0300", "2026-04-04 23:30 -0300, 2026-04-05 23:30 -0400"},
	} {
		table, err := Parse(test.cron, test.zone)
		if err != nil {
			t.Fatal(err)
		}

		at, err := time.Parse(timeLayout, test.after)
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for range strings.Split(test.want, ", ") {
			at = table.Next(at)
			got = append(got, at.In(table.zone).Format(timeLayout))
		}

		if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s in %s after %s (-want +got):\n%s", test.cron, test.zone, test.after, diff)
		}
	}
}

// TestNextGoesOn iterates the quarters of an hour around each change of clocks and each end of a
// month of a year: each result is later, by no more than the quarter and the hours that clocks skip
// or repeat.
func TestNextGoesOn(t *testing.T) {
	t.Parallel()

	for _, zone := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Asia/Beirut",
		"Africa/Casablanca", "Antarctica/Troll",
	} {
		table, err := Parse("*/15 * * * *", zone)
		if err != nil {
			t.Fatal(err)
		}

		for _, edge := range edges(table.zone) {
			for at := edge.Add(-3 * time.Hour); at.Before(edge.Add(3 * time.Hour)); {
				next := table.Next(at)
				if d := next.Sub(at); d < 15*time.Minute || d > 15*time.Minute+2*time.Hour {
					t.Fatalf("%s: got %s after %s", zone, next.In(table.zone), at.In(table.zone))
				}

				at = next
			}
		}
	}
}

// edges returns the beginnings of months and the changes of clocks in 2026.
func edges(zone *time.Location) (all []time.Time) {
	for month := range 12 {
		at := time.Date(2026, time.Month(1+month), 1, 0, 0, 0, 0, zone)
		all = append(all, at)

		if _, change := at.ZoneBounds(); change.Before(at.AddDate(0, 1, 0)) && !change.IsZero() {
			all = append(all, change)
		}
	}

	return all
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()

	for cron, want := range map[string]string{
		"":                "has 0",
		"* * * *":         "has 4",
		"0 0 3 * * *":     "has 6",
		"@daily":          "has 1",
		"60 * * * *":      `has an invalid minute: "60" is not a value from 0 to 59`,
		"* 24 * * *":      "has an invalid hour",
		"0 0 0 * *":       `has an invalid day of the month: "0" is not a value from 1 to 31`,
		"0 0 32 * *":      "has an invalid day of the month",
		"0 0 L * *":       `"L" is not a value from 1 to 31`,
		"0 0 1 13 *":      "has an invalid month",
		"0 0 1 0 *":       "has an invalid month",
		"0 0 * * 8":       "has an invalid day of the week",
		"0 0 * * foo":     `"foo" is not a value`,
		"0 0 * dec-jan *": `the range "dec-jan" is reversed`,
		"5-1 * * * *":     `the range "5-1" is reversed`,
		"1-2-3 * * * *":   `"2-3" is not a value`,
		"*/0 * * * *":     `"*/0" is not a valid step`,
		"*/10000 * * * *": `"*/10000" is not a valid step`,
		"*/5/5 * * * *":   `is not a valid step`,
		"*/ * * * *":      `"*/" is not a valid step`,
		"*-5 * * * *":     `"*" is not a value`,
		"1,,2 * * * *":    `"" is not a value`,
		"- * * * *":       `"" is not a value`,
		"+1 * * * *":      `"+1" is not a value`,
		"001 * * * *":     `"001" is not a value`,
		"٣ * * * *":       "is not a value",
		"TZ=UTC 0 0 * *":  `"TZ=UTC" is not a value`,
		"0 0 30 2 *":      "matches no date",
		"0 0 31 4,6,11 *": "matches no date",
	} {
		_, err := Parse(cron, "UTC")
		if e := fault.Of(err); err == nil || e.Kind != fault.Unprocessable || len(e.Fields) != 1 ||
			e.Fields[0].Name != "cron" || !strings.Contains(e.Fields[0].Message, want) {
			t.Errorf("%q: got %v, want %q", cron, err, want)
		}
	}

	for _, zone := range []string{"", "Local", "Europe/Atlantis", "../UTC", "/etc/localtime", "CEST5", "\x00"} {
		_, err := Parse("0 0 * * *", zone)
		if e := fault.Of(err); err == nil || e.Kind != fault.Unprocessable || len(e.Fields) != 1 ||
			e.Fields[0].Name != "timezone" {
			t.Errorf("zone %q: got %v, want a fault on timezone", zone, err)
		}
	}
}

// TestParseSchedule covers what pg_cron takes beyond cron expressions.
func TestParseSchedule(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"@daily":        "2026-02-28 00:00 +0100, 2026-03-01 00:00 +0100",
		" @Hourly ":     "2026-02-27 13:00 +0100, 2026-02-27 14:00 +0100",
		"@weekly":       "2026-03-01 00:00 +0100, 2026-03-08 00:00 +0100",
		"@monthly":      "2026-03-01 00:00 +0100, 2026-04-01 00:00 +0200",
		"@annually":     "2027-01-01 00:00 +0100, 2028-01-01 00:00 +0100",
		"0 3 $ * *":     "2026-02-28 03:00 +0100, 2026-03-31 03:00 +0200, 2026-04-30 03:00 +0200",
		"0 3 1,$ 2 *":   "2026-02-28 03:00 +0100, 2027-02-01 03:00 +0100, 2027-02-28 03:00 +0100",
		"0 0 */100 * *": "2026-03-01 00:00 +0100, 2026-04-01 00:00 +0200",
		"0 0 29 2 */7": "2032-02-29 00:00 +0100, 2060-02-29 00:00 +0100, 2088-02-29 00:00 +0100, " +
			"2128-02-29 00:00 +0100",
	} {
		table, err := ParseSchedule(text, "Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}

		at := time.Date(2026, 2, 27, 11, 30, 0, 0, time.UTC)
		var got []string
		for range strings.Split(want, ", ") {
			at = table.Next(at)
			got = append(got, at.In(table.zone).Format(timeLayout))
		}

		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}

	every, err := ParseSchedule("30 seconds", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[int]int{0: 30, 29: 30, 30: 60, 59: 60} {
		from := time.Date(2026, 1, 1, 0, 0, 0, 500, time.UTC)
		got := every.Next(from.Add(time.Duration(after) * time.Second))
		if wanted := from.Truncate(time.Second).Add(time.Duration(want) * time.Second); !got.Equal(wanted) {
			t.Errorf("30 seconds: got %s after second %d, want %s", got, after, wanted)
		}
	}

	for _, text := range []string{"", "@", "@reboot", "@never", "0 seconds", "60 seconds", "1 minute", "-1 seconds",
		"1.5 seconds", "seconds", "$ * * * *", "0 0 $/2 * *", "0 0 $-1 * *", "0 0 * $ *", "0 0 30 2 *",
		strings.Repeat("0,", 128) + "0 * * * *"} {
		if _, err := ParseSchedule(text, "UTC"); !fault.Is(err, fault.Unprocessable) {
			t.Errorf("%q: got %v, want Unprocessable", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, cron := range []string{"0 3 * * *", "*/5 1-4,9 1 jan-MAR 1", "0 0 1-7 * 5", "* * * * 7"} {
		f.Add(cron)
	}

	f.Fuzz(func(t *testing.T, cron string) {
		table, err := Parse(cron, "Europe/Berlin")
		if err != nil {
			return
		}

		at := time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC)
		for range 5 {
			next := table.Next(at)
			if next.IsZero() {
				return
			}

			if !next.After(at) {
				t.Fatalf("%q: got %s after %s", cron, next, at)
			}

			at = next
		}
	})
}

// days returns a time on each of n consecutive days, newest first, from 21 November 2026, a
// Saturday.
func days(n int) []time.Time {
	all := make([]time.Time, n)
	for i := range all {
		all[i] = time.Date(2026, 11, 21-i, 3, 0, 0, 0, time.UTC)
	}

	return all
}

func TestKeep(t *testing.T) {
	t.Parallel()

	at := func(texts ...string) []time.Time {
		var all []time.Time
		for _, text := range texts {
			one, err := time.Parse(timeLayout, text)
			if err != nil {
				t.Fatal(err)
			}

			all = append(all, one)
		}

		return all
	}
	for name, test := range map[string]struct {
		rules Rules
		made  []time.Time
		zone  string
		want  []int // indexes of the kept times
	}{
		"nothing":             {Rules{Last: 3}, nil, "UTC", nil},
		"no rule":             {Rules{}, days(3), "UTC", []int{0, 1, 2}},
		"last":                {Rules{Last: 2}, days(4), "UTC", []int{0, 1}},
		"more than there are": {Rules{Last: 9, Monthly: 9}, days(2), "UTC", []int{0, 1}},
		"daily":               {Rules{Daily: 3}, days(5), "UTC", []int{0, 1, 2}},
		// Saturday, and the Sundays before
		"weekly":  {Rules{Weekly: 3}, days(20), "UTC", []int{0, 6, 13}},
		"monthly": {Rules{Monthly: 3}, days(90), "UTC", []int{0, 21, 52}},
		"together": {Rules{Last: 2, Daily: 3, Weekly: 2, Monthly: 2}, days(40), "UTC",
			[]int{0, 1, 2, 6, 21}},
		"days without any": {Rules{Daily: 2},
			at("2026-11-21 03:00 +0000", "2026-11-01 03:00 +0000", "2026-10-01 03:00 +0000"), "UTC", []int{0, 1}},
		"the newest of a day": {Rules{Daily: 2},
			at("2026-11-21 01:00 +0000", "2026-11-21 09:00 +0000", "2026-11-20 23:00 +0000", "2026-11-20 01:00 +0000"),
			"UTC", []int{1, 2}},
		"in whatever order": {Rules{Last: 1},
			at("2026-11-19 01:00 +0000", "2026-11-21 09:00 +0000", "2026-11-20 23:00 +0000"), "UTC", []int{1}},
		"in that zone": {Rules{Daily: 2},
			at("2026-11-21 09:00 +0000", "2026-11-20 23:30 +0000", "2026-11-20 22:30 +0000"),
			"Europe/Berlin", []int{0, 2}},
		"a leap day": {Rules{Daily: 3},
			at("2028-03-01 03:00 +0000", "2028-02-29 03:00 +0000", "2028-02-28 03:00 +0000", "2028-02-27 03:00 +0000"),
			"UTC", []int{0, 1, 2}},
		"a week of two years": {Rules{Weekly: 2},
			at("2027-01-03 03:00 +0000", "2026-12-31 03:00 +0000", "2026-12-27 03:00 +0000"), "UTC", []int{0, 2}},
		"clocks put back": {Rules{Daily: 2},
			at("2026-10-25 02:30 +0100", "2026-10-25 02:30 +0200", "2026-10-24 02:30 +0200"),
			"Europe/Berlin", []int{0, 2}},
		"a day of 23 hours": {Rules{Daily: 2},
			at("2026-03-30 00:10 +0200", "2026-03-29 00:10 +0100", "2026-03-28 23:50 +0100"),
			"Europe/Berlin", []int{0, 1}},
	} {
		zone, err := Zone(test.zone)
		if err != nil {
			t.Fatal(err)
		}

		var got []int
		for i, selected := range test.rules.Keep(test.made, zone) {
			if selected {
				got = append(got, i)
			}
		}

		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// TestKeepDayByDay creates one item each day for three years and applies the rules after each. The
// number of remaining items and the oldest one must match the rules.
func TestKeepDayByDay(t *testing.T) {
	t.Parallel()

	rules := Rules{Daily: 7, Weekly: 5, Monthly: 12}
	var items []time.Time
	for day := range 3 * 365 {
		items = append(items, time.Date(2026, 1, 1+day, 3, 0, 0, 0, time.UTC))
		var remaining []time.Time
		for i, selected := range rules.Keep(items, time.UTC) {
			if selected {
				remaining = append(remaining, items[i])
			}
		}

		items = remaining
	}

	if first := items[0]; len(items) < 20 || len(items) > 24 || first.Format("2006-01") != "2028-01" {
		t.Errorf("got %d remaining items, the first of %s", len(items), first)
	}
}
