package transfer

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// typeSet is a set of candidate types of a column.
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

	anyType = 1<<9 - 1
)

// typeNames are the types from narrow to wide; text is the fallback.
var typeNames = []struct {
	kind typeSet
	name string
}{{boolean, "boolean"}, {integer, "integer"}, {bigint, "bigint"}, {numeric, "numeric"}, {date, "date"},
	{timestamp, "timestamp"}, {timestamptz, "timestamptz"}, {uniqueID, "uuid"}, {jsonb, "jsonb"}}

// guess is the state of the type detection of a column.
type guess struct {
	possible typeSet
	seen     bool // has had a value that is not null
}

func (g guess) name() string {
	if g.seen {
		for _, k := range typeNames {
			if g.possible&k.kind != 0 {
				return k.name
			}
		}
	}

	return "text"
}

// narrow removes the types that do not accept a value. PostgreSQL reads the value as any remaining
// type without loss. Numbers with a leading 0 stay text, since they may be codes.
func (g *guess) narrow(v value) {
	if v.null {
		return
	}

	g.seen = true

	if g.possible == 0 {
		return
	}

	switch v.kind {
	case 't', 'f':
		g.possible &= boolean
		return
	case '{', '[':
		g.possible &= jsonb
		return
	case '0':
		g.possible &= integer | bigint | numeric
	case '"':
		g.possible &= date | timestamp | timestamptz | uniqueID
	default:
		g.possible &^= jsonb
	}

	g.possible &= typesOf(v.text, g.possible)
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?$`)

// typesOf returns the wanted types that accept a text.
func typesOf(text []byte, wanted typeSet) typeSet {
	if len(text) == 0 || len(text) > 64 {
		return 0
	}

	var is typeSet
	if wanted&boolean != 0 && (bytes.EqualFold(text, []byte("true")) || bytes.EqualFold(text, []byte("false"))) {
		is |= boolean
	}

	if wanted&(integer|bigint|numeric) != 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') &&
		decimal.Match(text) {
		is |= numeric
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			is |= bigint
			if int64(int32(n)) == n {
				is |= integer
			}
		}
	}

	if wanted&uniqueID != 0 && len(text) == 36 && uuid.Validate(string(text)) == nil {
		is |= uniqueID
	}
	if wanted&(date|timestamp|timestamptz) != 0 && len(text) >= 10 && text[4] == '-' && text[7] == '-' {
		is |= timeTypes(string(text))
	}

	return is
}

var timeLayouts = []struct {
	kind   typeSet
	layout string
}{
	{timestamp, "2006-01-02 15:04:05"}, {timestamp, "2006-01-02 15:04"},
	{timestamptz, "2006-01-02 15:04:05Z07:00"}, {timestamptz, "2006-01-02 15:04:05Z07"},
	{timestamptz, "2006-01-02 15:04Z07:00"},
}

// timeTypes detects dates and times in the unambiguous formats of ISO 8601. A date is a timestamp
// too, at midnight, but no timestamptz: its meaning would depend on a time zone.
func timeTypes(text string) typeSet {
	if len(text) == 10 {
		if _, err := time.Parse(time.DateOnly, text); err != nil || strings.HasPrefix(text, "0000") {
			return 0
		}
		return date | timestamp
	}

	if text[10] == 'T' {
		text = text[:10] + " " + text[11:]
	}

	if i := strings.IndexByte(text, '.'); i >= 0 && len(text) > i+7 && text[i+7] >= '0' && text[i+7] <= '9' {
		return 0 // finer than a microsecond
	}

	for _, c := range timeLayouts {
		if t, err := time.Parse(c.layout, text); err == nil && t.Year() > 0 {
			return c.kind
		}
	}

	return 0
}

var nonIdentifier = regexp.MustCompile(`[^a-z0-9_]+`)

// columnNames derives unique column names from a file's headers.
func columnNames(headers []string) []string {
	names, taken := make([]string, len(headers)), map[string]bool{}
	for _, system := range []string{"ctid", "oid", "xmin", "xmax", "cmin", "cmax", "tableoid"} {
		taken[system] = true
	}

	for i, h := range headers {
		name := strings.Trim(nonIdentifier.ReplaceAllString(strings.ToLower(h), "_"), "_")
		if name == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		if name[0] >= '0' && name[0] <= '9' {
			name = "_" + name
		}

		name = name[:min(len(name), 55)]
		unique := name
		for n := 2; taken[unique]; n++ {
			unique = fmt.Sprintf("%s_%d", name, n)
		}

		taken[unique] = true
		names[i] = unique
	}

	return names
}
