package transfer

import (
	"bytes"
	"net/netip"
	"strconv"
	"unicode/utf8"
)

const maxDigits = 31 // before a decimal sign, and after it

// A reading is a way to read a column's numbers or dates.
type reading int

const (
	eachAlone  reading = iota // a value that has one meaning only
	pointFirst                // 1,234.5
	commaFirst                // 1.234,5
	dayFirst                  // 31/12/2026
	monthFirst                // 12/31/2026
	readings
)

// decimalReadings maps [Options.Decimal] to readings.
var decimalReadings = map[string]reading{"point": pointFirst, "comma": commaFirst}

// number is a text that is a number in at least one reading.
type number struct {
	point, comma []byte // as PostgreSQL writes it; nil if the reading does not read it
	blank        bool   // grouped by blanks or apostrophes and without a fraction: may be a code
}

// parseNumber parses a number, with digits grouped or not. The zero number is no number, as are
// texts with a leading 0 or an exponent, which may be codes.
func parseNumber(text []byte) number {
	if len(text) == 0 || len(text) > 80 || (text[0] != '-' && (text[0] < '0' || text[0] > '9')) {
		return number{}
	}

	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) <= maxDigits && allDigits(digits) {
		if len(digits) > 1 && digits[0] == '0' {
			return number{}
		}
		return number{point: text, comma: text}
	}

	if _, err := netip.ParseAddr(string(text)); err == nil { // 192.168.100.200
		return number{}
	}

	point, blank := normalize(text, '.')
	comma, _ := normalize(text, ',')

	return number{point: point, comma: comma, blank: blank}
}

// hasOneMeaning reports whether both readings that read the number agree.
func (n number) hasOneMeaning() bool {
	return !n.blank && (n.point == nil || n.comma == nil || bytes.Equal(n.point, n.comma))
}

// in returns the number in a reading, nil if that does not read it.
func (n number) in(r reading) []byte {
	switch {
	case r == pointFirst:
		return n.point
	case r == commaFirst:
		return n.comma
	case !n.hasOneMeaning():
		return nil
	case n.point != nil:
		return n.point
	}

	return n.comma
}

// normalize reads a number with a decimal sign and writes it as PostgreSQL does; nil if it is none.
func normalize(text []byte, decimal byte) (plain []byte, blank bool) {
	sign := text[:len(text)-len(bytes.TrimPrefix(text, []byte("-")))]
	whole, fraction, hasFraction := bytes.Cut(text[len(sign):], []byte{decimal})
	if hasFraction && (len(fraction) == 0 || len(fraction) > maxDigits || !allDigits(fraction)) {
		return nil, false
	}

	whole, separator := ungroup(whole, decimal)
	if len(whole) == 0 || len(whole) > maxDigits || (len(whole) > 1 && whole[0] == '0') {
		return nil, false
	}

	plain = append(append(plain, sign...), whole...)
	if hasFraction {
		plain = append(append(plain, '.'), fraction...)
	}

	return plain, separator != 0 && separator != '.' && separator != ',' && !hasFraction
}

// ungroup removes the separator between groups with three digits, or with two before the last
// three, as in India. It returns nothing if the groups have another form.
func ungroup(whole []byte, decimal byte) (digits []byte, separator rune) {
	var sizes []int
	for size := 0; len(whole) > 0; {
		c, width := utf8.DecodeRune(whole)
		whole = whole[width:]

		switch {
		case c >= '0' && c <= '9':
			digits = append(digits, byte(c))
			if size++; len(whole) == 0 {
				sizes = append(sizes, size)
			}
		case !isGroupSeparator(c) || c == rune(decimal) || (separator != 0 && c != separator) || len(whole) == 0:
			return nil, 0
		default:
			separator, sizes, size = c, append(sizes, size), 0
		}
	}

	if separator == 0 {
		return digits, 0
	}
	if last := sizes[len(sizes)-1]; last != 3 || sizes[0] == 0 || sizes[0] > 3 || digits[0] == '0' {
		return nil, 0
	}

	for _, size := range sizes[1 : len(sizes)-1] {
		if size != sizes[1] || (size != 3 && (size != 2 || separator != ',' || sizes[0] > 2)) {
			return nil, 0
		}
	}

	return digits, separator
}

func isGroupSeparator(c rune) bool {
	switch c {
	case '.', ',', ' ', '\'', '\u2019', '\u00A0', '\u202F':
		return true
	}
	return false
}

func allDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}

// numberTypes returns the types that accept a number as PostgreSQL writes it, none for nil.
func numberTypes(plain []byte) typeSet {
	if plain == nil {
		return 0
	}

	is := numeric
	if n, err := strconv.ParseInt(string(plain), 10, 64); err == nil {
		is |= bigint
		if int64(int32(n)) == n {
			is |= integer
		}
	}

	return is
}
