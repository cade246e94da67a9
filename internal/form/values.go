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
	"unicode/utf8"
)

var (
	numberPattern = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{1,30})?$`)
	ratingPattern = regexp.MustCompile(`^-?[0-9]{1,18}$`)
	phonePattern  = regexp.MustCompile(`^\+?[0-9][0-9 ()./-]{1,30}[0-9]$`)
)

const maxAddress = 254 // characters, the limit of SMTP

// judge validates a value and returns it in stored form. The error describes the problem. Matching
// a pattern takes from budget e.
func (d *Definition) judge(value string, r rules, e *effort) (string, error) {
	switch d.Type {
	case "text", "textarea", "email", "url", "phone":
		return value, d.judgeText(value, r, e)
	case "number", "rating":
		return value, d.judgeNumber(value)
	case "radio", "select":
		return value, judgeChoice(value, r)
	case "multiselect":
		return judgeChoices(value, r)
	case "date", "time", "datetime":
		return d.judgeDate(value, r)
	case "checkbox":
		if value != "true" && value != "false" {
			return "", errors.New("must be true or false")
		}
	}

	return value, nil
}

func (d *Definition) judgeText(value string, r rules, e *effort) error {
	length := int64(utf8.RuneCountInString(value))
	switch {
	case d.MinLength != nil && length < *d.MinLength:
		return errors.New("must be at least " + count(*d.MinLength, "character"))
	case d.MaxLength != nil && length > *d.MaxLength:
		return errors.New("must be at most " + count(*d.MaxLength, "character"))
	case d.Type != "textarea" && !oneLine(value):
		return errors.New("must be one line of text")
	case d.Type == "email" && !isAddress(value):
		return errors.New("must be an e-mail address")
	case d.Type == "url" && !isURL(value):
		return errors.New("must be an http or https URL")
	case d.Type == "phone" && !phonePattern.MatchString(value):
		return errors.New("must be a phone number")
	case r.pattern == nil:
		return nil
	}

	matches, err := e.match(r.pattern, value, length)
	if err == nil && !matches {
		err = errors.New("must match the pattern")
	}

	return err
}

func isAddress(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Name == "" && a.Address == s && utf8.RuneCountInString(s) <= maxAddress
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && !strings.Contains(s, " ")
}

// judgeNumber compares exactly: a value may have more digits than a float64.
func (d *Definition) judgeNumber(value string) error {
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

func judgeChoice(value string, r rules) error {
	if r.options != nil && !slices.Contains(r.options, value) {
		return errors.New("must be one of the options")
	}
	return nil
}

// judgeChoices accepts several options, written like the field's options, and returns a JSON array.
func judgeChoices(value string, r rules) (string, error) {
	chosen, err := parseList(value)
	if err != nil {
		return "", err
	}

	left := make(map[string]bool, len(r.options)) // whether an option is not chosen yet
	for _, option := range r.options {
		left[option] = true
	}

	for _, choice := range chosen {
		unused, known := left[choice]
		if !known {
			return "", errors.New("must be options of the field")
		}
		if !unused {
			return "", errors.New("must not repeat an option")
		}

		left[choice] = false
	}

	return formatList(chosen)
}

func (d *Definition) judgeDate(value string, r rules) (string, error) {
	kept, t, err := parseDate(d.Type, value, d.layout())
	switch {
	case err != nil:
		return "", err
	case r.earliest != nil && t.Before(*r.earliest):
		return "", errors.New("must not be before start_date")
	case r.latest != nil && t.After(*r.latest):
		return "", errors.New("must not be after end_date")
	}

	return kept, nil
}
