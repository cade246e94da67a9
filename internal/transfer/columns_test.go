package transfer

import "testing"

// TestConvertDate names what is wrong with a date that a column can't have.
func TestConvertDate(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		text  string
		dates reading
		value string // in the column; "": refused
		fault string
	}{
		{"31.12.2026", eachAlone, "2026-12-31", ""},
		{"01.02.2026", dayFirst, "2026-02-01", ""},
		{"01/02/2026 10:00", monthFirst, "2026-01-02 10:00", ""},
		{"2026-12-31", dayFirst, "2026-12-31", ""},
		{"01.02.2026", eachAlone, "", "whose day and month can be swapped"},
		{"12/31/2026", dayFirst, "", "whose day and month are not in the order of the file's other dates"},
		{"31.12.26", dayFirst, "", "whose year has two digits"},
		{"31.02.2026", dayFirst, "", "which the calendar does not have"},
		{"32.13.26", eachAlone, "", "which the calendar does not have"},
	} {
		column := ImportedColumn{Name: "day", date: true, dates: tt.dates}
		got, bad := column.convert(value{text: []byte(tt.text)})
		if string(got) != tt.value {
			t.Errorf("%s: got %q, want %q", tt.text, got, tt.value)
		}

		message := ""
		if tt.fault != "" {
			message = `has the date "` + tt.text + `", ` + tt.fault + "; write it as 2026-12-31"
		}
		if (bad == nil) != (message == "") || bad != nil && bad.Message != message {
			t.Errorf("%s: got %+v, want %q", tt.text, bad, message)
		}
	}
}
