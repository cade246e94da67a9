package rules

import "github.com/socle-dev/socle/internal/fault"

const maxURL = 500 // bytes

// refuse returns the failure of a member of the settings.
func refuse(field, code, format string, args ...any) error {
	return fault.OnField(fault.Unprocessable, field, code, format, args...)
}

// outOfRange returns the failure of a number below low or above high, nil for another one.
func outOfRange(field string, value, low, high int) error {
	if value >= low && value <= high {
		return nil
	}
	return refuse(field, "out_of_range", "must be %d to %d", low, high)
}

// tooMany returns the failure of a list with more than most items, nil for another one.
func tooMany(field string, items, most int) error {
	if items <= most {
		return nil
	}
	return refuse(field, "too_many", "must have at most %d items", most)
}
