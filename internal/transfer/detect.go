package transfer

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"
)

// typeSet is a set of candidate types for a column.
type typeSet uint16

const (
	boolean typeSet = 1 << iota
	integer
	bigint
	numeric
	date
	timestamp
	timestamptz
	uniqueID
	jsonb

	numbers = integer | bigint | numeric
	dates   = date | timestamp | timestamptz
	others  = boolean | uniqueID | jsonb
)

// typeNames are the types from narrow to wide; text is the fallback.
var typeNames = []struct {
	kind typeSet
	name string
}{{boolean, "boolean"}, {integer, "integer"}, {bigint, "bigint"}, {numeric, "numeric"}, {date, "date"},
	{timestamp, "timestamp"}, {timestamptz, "timestamptz"}, {uniqueID, "uuid"}, {jsonb, "jsonb"}}

// facts is what a column's values have in common.
type facts struct {
	seen bool // has had a value that is not null

	other   typeSet           // types that need no reading
	numbers [readings]typeSet // number types by reading
	dates   [readings]typeSet // date types by reading

	evidence [readings]bool // a value that this reading alone reads
	unclear  string         // first value that two readings read differently; "" if none
	comma    bool           // an ambiguous number has a comma
	blank    bool           // a number may be a code, such as 12 345
	local    bool           // a date has its year last

	shortYear string // first date with a two-digit year; "" if none

	noNumber, noDate bool // a value is none in any reading
}

func newFacts() *facts {
	f := &facts{other: others}
	for _, r := range []reading{eachAlone, pointFirst, commaFirst} {
		f.numbers[r] = numbers
	}
	for _, r := range []reading{eachAlone, dayFirst, monthFirst} {
		f.dates[r] = dates
	}

	return f
}

// add narrows the types to those that accept a value. PostgreSQL reads the value, converted by the
// reading, as any remaining type without loss.
func (f *facts) add(v value) {
	if v.null {
		return
	}
	f.seen = true

	switch v.kind {
	case 't', 'f':
		f.keep(boolean)
	case '{', '[':
		f.keep(jsonb)
	case '0':
		f.keep(0)
		f.keepNumbers(number{point: v.text, comma: v.text})
		f.keepNoDate()
		return
	case '"':
		f.keep(uniqueID & otherTypes(v.text))
		f.keepNumbers(number{})
		f.addDate(string(v.text))
		return
	default:
		if f.other != 0 {
			f.keep(otherTypes(v.text))
		}
		f.keepNumbers(f.addNumber(v.text))
		f.addDate(string(v.text))
		return
	}

	f.keepNumbers(number{})
	f.keepNoDate()
}

func (f *facts) keep(types typeSet) { f.other &= types }

// otherTypes returns the types that accept a text and need no reading.
func otherTypes(text []byte) typeSet {
	switch {
	case bytes.EqualFold(text, []byte("true")) || bytes.EqualFold(text, []byte("false")):
		return boolean
	case len(text) == 36 && uuid.Validate(string(text)) == nil:
		return uniqueID
	}

	return 0
}

// addNumber records how a number can be read.
func (f *facts) addNumber(text []byte) number {
	n := parseNumber(text)
	switch {
	case n.point == nil && n.comma == nil:
	case !n.hasOneMeaning() && n.point != nil && n.comma != nil && !bytes.Equal(n.point, n.comma):
		if f.unclear == "" {
			f.unclear = string(text)
		}
		f.comma = f.comma || bytes.IndexByte(text, ',') >= 0
	case n.comma == nil:
		f.evidence[pointFirst] = true
	case n.point == nil:
		f.evidence[commaFirst] = true
	case n.blank:
		f.blank = true
	}

	return n
}

func (f *facts) keepNumbers(n number) {
	f.noNumber = f.noNumber || n.point == nil && n.comma == nil
	for _, r := range []reading{eachAlone, pointFirst, commaFirst} {
		f.numbers[r] &= numberTypes(n.in(r))
	}
}

func (f *facts) keepNoDate() { f.dates, f.noDate = [readings]typeSet{}, true }

// addDate narrows the date types and records how a date can be read.
func (f *facts) addDate(text string) {
	d, local, valid := parseLocalDate(text)
	if !local {
		types := timeTypes(text)
		f.noDate = f.noDate || types == 0
		for r := range f.dates {
			f.dates[r] &= types
		}
		return
	}

	f.local = true
	switch {
	case d.hasShortYear():
		f.shortYear, f.dates = cmp.Or(f.shortYear, text), [readings]typeSet{}
		return
	case !valid:
		f.keepNoDate()
		return
	}

	f.addLocalDate(text, d)
}

func (f *facts) addLocalDate(text string, d parsedDate) {
	day, month := d.in(dayFirst), d.in(monthFirst)
	switch {
	case month == "":
		f.evidence[dayFirst] = true
	case day == "":
		f.evidence[monthFirst] = true
	case day != month && f.unclear == "":
		f.unclear = text
	}

	for _, r := range []reading{eachAlone, dayFirst, monthFirst} {
		f.dates[r] &= timeTypes(d.in(r))
	}
}

// typeIn returns the narrowest type that accepts all values in the readings for numbers and dates.
func (f *facts) typeIn(n, d reading) string {
	if f.seen {
		types := f.other | f.numbers[n] | f.dates[d]
		for _, k := range typeNames {
			if types&k.kind != 0 {
				return k.name
			}
		}
	}

	return "text"
}

// columnNames derives unique column names from a file's headers: their letters, in any script, in
// lower case.
func columnNames(headers []string) []string {
	names, nameSet := make([]string, len(headers)), map[string]bool{}
	for _, system := range []string{"ctid", "oid", "xmin", "xmax", "cmin", "cmax", "tableoid"} {
		nameSet[system] = true
	}

	for i, h := range headers {
		name := identifier(h)
		if name == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		if first, _ := utf8.DecodeRuneInString(name); !unicode.IsLetter(first) {
			name = "_" + name
		}

		name = strings.ToValidUTF8(name[:min(len(name), 55)], "")
		unique := name
		for n := 2; nameSet[unique]; n++ {
			unique = fmt.Sprintf("%s_%d", name, n)
		}

		nameSet[unique] = true
		names[i] = unique
	}

	return names
}

// identifier returns a header's letters, marks and digits, joined by underscores.
func identifier(header string) string {
	words := strings.FieldsFunc(norm.NFC.String(strings.ToLower(header)), func(c rune) bool {
		return !unicode.In(c, unicode.L, unicode.M, unicode.Nd)
	})
	return strings.Join(words, "_")
}
