package statement

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgtype"
)

// maxExact is the largest integer below which all integers are exact in a 64-bit float.
const maxExact = 1 << 53

// appendValue appends a value's JSON representation from PostgreSQL's text: null, a boolean, a
// number if it is exact in a 64-bit float, JSON for JSON types, and otherwise the text as a string.
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
		// ambiguous JSON, such as duplicate members, becomes a string
		if jsontext.Value(text).IsValid() {
			return append(to, text...), nil
		}
	}

	return jsontext.AppendQuote(to, validUTF8(string(text)))
}

// exact reports whether a number's text is valid JSON and exact in a 64-bit float.
func exact(oid uint32, s string) bool {
	if !jsontext.Value(s).IsValid() || s == "null" { // NaN, Infinity
		return false
	}

	switch oid {
	case pgtype.Float4OID, pgtype.Float8OID: // shortest text that reads back to the same value
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

	// The parsed float's shortest text must equal this text except for trailing zeros.
	want, ok := new(big.Rat).SetString(s)
	got, also := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))

	return ok && also && want.Cmp(got) == 0
}

// validUTF8 replaces invalid UTF-8, since a session can use another encoding.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// parameter returns a JSON value as text for PostgreSQL, which infers the type; nil for null.
func parameter(v jsontext.Value) ([]byte, error) {
	switch v.Kind() {
	case 'n':
		return nil, nil
	case '"':
		return jsontext.AppendUnquote([]byte{}, v)
	}

	return v, nil
}
