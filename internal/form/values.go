package form

import (
	"errors"
	"fmt"
	"math/big"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

var (
	numberPattern = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{1,30})?$`)
	ratingPattern = regexp.MustCompile(`^-?[0-9]{1,18}$`)
	phonePattern  = regexp.MustCompile(`^\+?[0-9][0-9 ()./-]{1,30}[0-9]$`)
)

const maxEmailLength = 254 // characters, the SMTP limit

// validate validates a value and returns it in stored form. The error describes the problem.
// Matching a pattern takes from budget.
func (d *Definition) validate(value string, r rules, budget *patternBudget) (string, error) {
	switch d.Type {
	case "text", "textarea", "email", "url", "phone":
		return value, d.validateText(value, r, budget)
	case "number", "rating":
		return value, d.validateNumber(value)
	case "radio", "select":
		return value, validateChoice(value, r)
	case "multiselect":
		return validateChoices(value, r)
	case "date", "time", "datetime":
		return d.validateDate(value, r)
	case "checkbox":
		if value != "true" && value != "false" {
			return "", errors.New("must be true or false")
		}
	}

	return value, nil
}

func (d *Definition) validateText(value string, r rules, budget *patternBudget) error {
	length := int64(utf8.RuneCountInString(value))
	switch {
	case d.MinLength != nil && length < *d.MinLength:
		return errors.New("must be at least " + plural(*d.MinLength, "character"))
	case d.MaxLength != nil && length > *d.MaxLength:
		return errors.New("must be at most " + plural(*d.MaxLength, "character"))
	case d.Type != "textarea" && !oneLine(value):
		return errors.New("must be one line of text")
	case d.Type == "email" && !isEmail(value):
		return errors.New("must be an e-mail address")
	case d.Type == "url" && !isURL(value):
		return errors.New("must be an http or https URL")
	case d.Type == "phone" && !phonePattern.MatchString(value):
		return errors.New("must be a phone number")
	case r.pattern == nil:
		return nil
	}

	matches, err := budget.match(r.pattern, value, length)
	if err != nil {
		return err
	}
	if !matches {
		return errors.New("must have the expected format")
	}

	return nil
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Name == "" && a.Address == s && utf8.RuneCountInString(s) <= maxEmailLength
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && !strings.Contains(s, " ")
}

// validateNumber compares exactly: a value may have more digits than a float64.
func (d *Definition) validateNumber(value string) error {
	if d.Type == "rating" && !ratingPattern.MatchString(value) {
		return errors.New("must be a whole number")
	}
	if !numberPattern.MatchString(value) {
		return errors.New("must be a number")
	}

	n, ok := new(big.Rat).SetString(value)
	switch {
	case !ok:
		return errors.New("must be a number")
	case d.MinValue != nil && n.Cmp(new(big.Rat).SetInt64(*d.MinValue)) < 0:
		return fmt.Errorf("must not be below %d", *d.MinValue)
	case d.MaxValue != nil && n.Cmp(new(big.Rat).SetInt64(*d.MaxValue)) > 0:
		return fmt.Errorf("must not be above %d", *d.MaxValue)
	}

	return nil
}

func validateChoice(value string, r rules) error {
	if r.options != nil && !slices.Contains(r.options, value) {
		return errors.New("must be one of the options")
	}
	return nil
}

// validateChoices accepts several options, written like the field's options, and returns a JSON
// array.
func validateChoices(value string, r rules) (string, error) {
	choices, err := parseList(value)
	if err != nil {
		return "", err
	}

	available := make(map[string]bool, len(r.options)) // whether an option is not chosen yet
	for _, option := range r.options {
		available[option] = true
	}

	for _, choice := range choices {
		isAvailable, ok := available[choice]
		if !ok {
			return "", errors.New("must be options of the field")
		}
		if !isAvailable {
			return "", errors.New("must not repeat an option")
		}

		available[choice] = false
	}

	return formatList(choices)
}

// formatLimit formats a date limit in the field's format, or returns isoDate without one.
func (d *Definition) formatLimit(limit time.Time, isoDate string) string {
	if layout := d.layout(); layout != "" {
		return limit.UTC().Format(layout)
	}
	return isoDate
}

func (d *Definition) validateDate(value string, r rules) (string, error) {
	isoDate, t, err := d.parseDate(value)
	switch {
	case err != nil:
		return "", err
	case r.earliest != nil && t.Before(*r.earliest):
		return "", errors.New("must not be before " + d.formatLimit(*r.earliest, *d.StartDate))
	case r.latest != nil && t.After(*r.latest):
		return "", errors.New("must not be after " + d.formatLimit(*r.latest, *d.EndDate))
	}

	return isoDate, nil
}
