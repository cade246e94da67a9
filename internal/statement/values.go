package statement

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgtype"
)

// maxExact is the largest integer up to which every reader of JSON reads all of them exactly.
const maxExact = 1 << 53

// appendValue appends a value of a type, of the text that PostgreSQL prints, as JSON: null, a boolean, a number if every
// reader reads it exactly, JSON for JSON, and else that text.
func appendValue(to []byte, oid uint32, text []byte) ([]byte, error) {
	if text == nil {
		return append(to, "null"...), nil
	}

	switch oid {
	case pgtype.BoolOID:
		return strconv.AppendBool(to, string(text) == "t"), nil
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID, pgtype.NumericOID, pgtype.Float4OID,
		pgtype.Float8OID:
		if exact(oid, string(text)) {
			return append(to, text...), nil
		}
	case pgtype.JSONOID, pgtype.JSONBOID:
		if jsontext.Value(text).IsValid() { // what JSON readers disagree on, such as duplicate members, stays text
			return append(to, text...), nil
		}
	}

	return jsontext.AppendQuote(to, readable(string(text)))
}

// exact reports whether a number's text is one of JSON that a reader with 64 bits of floating point keeps.
func exact(oid uint32, s string) bool {
	if !jsontext.Value(s).IsValid() || s == "null" { // NaN, Infinity
		return false
	}

	switch oid {
	case pgtype.Float4OID, pgtype.Float8OID: // printed so that it is read back
		return true
	case pgtype.NumericOID:
		return exactNumeric(s)
	}

	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n >= -maxExact && n <= maxExact
}

func exactNumeric(s string) bool {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) > maxExact || len(s) > 40 {
		return false
	}

	// The shortest text of the number that is read must be this one but for zeros at the end.
	want, ok := new(big.Rat).SetString(s)
	got, also := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))

	return ok && also && want.Cmp(got) == 0
}

// readable makes text one that JSON holds: a session can print in another encoding.
func readable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// parameter returns what a value of JSON is for PostgreSQL, which finds its type: text, or nil for null.
func parameter(v jsontext.Value) ([]byte, error) {
	switch v.Kind() {
	case 'n':
		return nil, nil
	case '"':
		return jsontext.AppendUnquote([]byte{}, v)
	}

	return v, nil
}
