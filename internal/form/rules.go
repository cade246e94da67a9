package form

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

const (
	maxLabel      = 100  // characters
	maxDefault    = 1000 // characters
	maxPattern    = 1000 // characters
	maxOptions    = 1000
	maxOptionSize = 255 // characters
)

// outOfRange is the error code for a minimum above the maximum.
const outOfRange = "out_of_range"

// rules holds a definition's compiled rules. A missing or invalid rule accepts every value.
type rules struct {
	pattern          *pattern
	options          []string
	earliest, latest *time.Time
}

// check returns the definition's problems. It normalizes options and lists to JSON arrays and dates
// to ISO 8601, which it accepts unchanged.
func (d *Definition) check() problems {
	var p problems
	p.checkLine("label", d.Label, maxLabel)

	if d.Name != nil && !validName(*d.Name) {
		p.add("name", "invalid_format", "must be a letter, then up to 49 letters, digits, _ or -, and no UUID")
	}
	if d.Description != nil {
		p.checkText("description", *d.Description, maxDescription)
	}

	switch {
	case d.Type == "":
		p.add("type", "required", "is required")
	case !slices.Contains(Types, d.Type):
		p.add("type", "invalid_value", "must be one of "+strings.Join(Types, ", "))
		return p
	}

	d.checkDefault(&p, d.compileRules(&p))
	return p
}

// compileRules compiles the rules and reports problems with them.
func (d *Definition) compileRules(p *problems) (r rules) {
	switch {
	case slices.Contains(textTypes, d.Type):
		d.checkLengths(p)
		r.pattern = d.checkPattern(p)
	case slices.Contains(numberTypes, d.Type):
		p.checkOrder("min_value", d.MinValue, "max_value", d.MaxValue)
	case slices.Contains(choiceTypes, d.Type):
		r.options = d.checkOptions(p)
	case slices.Contains(dateTypes, d.Type):
		r.earliest, r.latest = d.checkDates(p)
	}

	return r
}

func (d *Definition) checkDefault(p *problems, r rules) {
	if d.DefaultValue == nil || !p.checkText("default_value", *d.DefaultValue, maxDefault) {
		return
	}

	value, err := d.validate(*d.DefaultValue, r, newPatternBudget())
	if err != nil {
		p.add("default_value", "invalid_value", err.Error())
		return
	}

	d.DefaultValue = &value
}

func (d *Definition) checkLengths(p *problems) {
	if d.MinLength != nil && *d.MinLength < 0 {
		p.add("min_length", "invalid_value", "must not be negative")
	}
	if d.MaxLength != nil && *d.MaxLength < 0 {
		p.add("max_length", "invalid_value", "must not be negative")
	}

	p.checkOrder("min_length", d.MinLength, "max_length", d.MaxLength)
}

func (p *problems) checkOrder(lower string, lowerValue *int64, upper string, upperValue *int64) {
	if lowerValue != nil && upperValue != nil && *lowerValue > *upperValue {
		p.add(lower, outOfRange, "must not be above "+upper)
	}
}

// checkPattern compiles the pattern to match whole values.
func (d *Definition) checkPattern(p *problems) *pattern {
	if d.Pattern == nil || !p.checkText("pattern", *d.Pattern, maxPattern) {
		return nil
	}

	expr, err := compilePattern(patterns, *d.Pattern)
	if err == errTooComplex {
		p.add("pattern", "invalid_value", err.Error())
		return nil
	}
	if err != nil {
		p.add("pattern", "invalid_format", err.Error())
		return nil
	}

	if err := expr.checkMaxLength(d.MaxLength); err != nil {
		p.add("pattern", "invalid_value", err.Error())
	}

	return expr
}

// syntaxMessage returns a syntax error without repeating the expression.
func syntaxMessage(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return e.Code.String()
	}
	return "invalid syntax"
}

func (d *Definition) checkOptions(p *problems) []string {
	if d.Options == nil {
		p.add("options", "required", "is required for a field of type "+d.Type)
		return nil
	}

	options, err := parseList(*d.Options)
	if err != nil {
		p.add("options", "invalid_format", err.Error())
		return nil
	}

	switch n := len(options); {
	case n == 0:
		p.add("options", "required", "must be at least one option")
		return nil
	case n > maxOptions:
		p.add("options", "too_many", fmt.Sprintf("must be at most %d options", maxOptions))
		return nil
	}

	set := make(map[string]bool, len(options))
	for i, option := range options {
		if strings.TrimSpace(option) == "" || !oneLine(option) || utf8.RuneCountInString(option) > maxOptionSize {
			p.add("options", "invalid_value",
				fmt.Sprintf("must be lines of 1 to %d characters; option %d is not", maxOptionSize, i+1))
			return nil
		}

		if set[option] {
			p.add("options", "duplicate", fmt.Sprintf("must be unique; option %d is a duplicate", i+1))
			return nil
		}

		set[option] = true
	}

	text, err := formatList(options)
	if err != nil {
		p.add("options", "invalid_format", err.Error())
		return nil
	}

	d.Options = &text
	return options
}

// parseList parses a JSON array of strings or, unless s starts with [, a comma-separated list.
func parseList(s string) ([]string, error) {
	if !strings.HasPrefix(strings.TrimSpace(s), "[") {
		items := strings.Split(s, ",")
		for i, item := range items {
			items[i] = strings.TrimSpace(item)
		}

		return items, nil
	}

	var items []string
	if err := json.Unmarshal([]byte(s), &items); err != nil {
		return nil, errors.New("must be a JSON array of strings or a comma-separated list")
	}

	return items, nil
}

// formatList encodes a list as a JSON array.
func formatList(items []string) (string, error) {
	text, err := json.Marshal(items)
	if err != nil {
		return "", errors.New("must be a list of strings")
	}

	return string(text), nil
}

// plural formats a count: "1 option", "2 options".
func plural[T int | int64](n T, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(int64(n), 10) + " " + thing + "s"
}
