package transfer

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// numberFormat is the meaning that a number format gives to its cells' numbers.
type numberFormat struct {
	date    bool   // dates or times
	elapsed bool   // durations: [h]:mm
	mask    string // a code's digits: 00000
}

// codeMask matches number formats for codes, which keep leading zeros: postal codes, telephone
// numbers.
var codeMask = regexp.MustCompile(`^0[0 \-\\"()/]*0$`)

var elapsedUnit = regexp.MustCompile(`(?i)\[(h+|m+|s+)\]`)

// builtinFormat returns the format for a number that ECMA-376 predefines, with East Asia's.
func builtinFormat(id int) numberFormat {
	switch {
	case id == 46:
		return numberFormat{elapsed: true}
	case id >= 14 && id <= 22, id >= 27 && id <= 36, id == 45, id == 47, id >= 50 && id <= 58:
		return numberFormat{date: true}
	}

	return numberFormat{}
}

// parseFormat reads a format code.
func parseFormat(code string) numberFormat {
	switch {
	case elapsedUnit.MatchString(code):
		return numberFormat{elapsed: true}
	case isDateFormat(code):
		return numberFormat{date: true}
	case codeMask.MatchString(code):
		return numberFormat{mask: strings.NewReplacer(`\`, "", `"`, "").Replace(code)}
	}

	return numberFormat{}
}

// isDateFormat reports whether a number format has a year, month, day, hour or second outside
// quotes and brackets.
func isDateFormat(code string) bool {
	inQuotes, inBrackets := false, false
	for i := 0; i < len(code); i++ {
		switch c := code[i]; {
		case c == '\\' || c == '_' || c == '*':
			i++
		case c == '"':
			inQuotes = !inQuotes
		case inQuotes:
		case c == '[':
			inBrackets = true
		case c == ']':
			inBrackets = false
		case !inBrackets && strings.IndexByte("yYmMdDhHsS", c) >= 0:
			return true
		}
	}

	return false
}

// apply writes a number's digits into the mask, from the right.
func (f numberFormat) apply(n int64) []byte {
	digits := fmt.Sprintf("%0*d", strings.Count(f.mask, "0"), n)
	text := []byte(digits[:len(digits)-strings.Count(f.mask, "0")])

	rest := digits[len(text):]
	for i := range len(f.mask) {
		if f.mask[i] != '0' {
			text = append(text, f.mask[i])
			continue
		}
		text, rest = append(text, rest[0]), rest[1:]
	}

	return text
}

// elapsedTime returns days as hours, minutes and seconds, which PostgreSQL reads as an interval.
func elapsedTime(days float64) string {
	sign := ""
	if days < 0 {
		sign, days = "-", -days
	}
	if days > 1e9 {
		return fmt.Sprint(sign, days)
	}

	milliseconds := int64(math.Round(days * 86_400_000))
	text := fmt.Sprintf("%s%02d:%02d:%02d", sign, milliseconds/3_600_000, milliseconds/60_000%60, milliseconds/1000%60)
	if fraction := milliseconds % 1000; fraction != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%03d", fraction), "0")
	}

	return text
}

// columnLetters returns the letters for a column's number, from 1.
func columnLetters(number string) string {
	n, err := strconv.Atoi(number)
	if err != nil || n > 16_384 {
		return number
	}

	letters := ""
	for ; n > 0; n = (n - 1) / 26 {
		letters = string(rune('A'+(n-1)%26)) + letters
	}

	return letters
}
