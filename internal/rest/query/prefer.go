package query

import (
	"math"
	"strconv"
	"strings"
)

// Prefer holds the Prefer header's preferences, in its own words; "" means absent.
type Prefer struct {
	Resolution  string // merge-duplicates, ignore-duplicates
	Missing     string // default, null
	Return      string // minimal, headers-only, representation
	Count       string // exact, planned, estimated
	Tx          string // commit, rollback
	Handling    string // strict, lenient
	Timezone    string // any text
	Read        string // replica, primary
	MaxAffected *int64 // non-negative
	Invalid     []string
}

// ParsePrefer parses the Prefer headers' values. The first preference of a kind wins.
func ParsePrefer(values []string) Prefer {
	var p Prefer
	for _, header := range values {
		for token := range strings.SplitSeq(header, ",") {
			if token = strings.Trim(token, " \t"); token != "" && !p.add(token) {
				p.Invalid = append(p.Invalid, token)
			}
		}
	}

	return p
}

// add applies one preference, and reports whether it is valid.
func (p *Prefer) add(token string) bool {
	kind, value, _ := strings.Cut(token, "=")
	var to *string
	switch token {
	case "resolution=merge-duplicates", "resolution=ignore-duplicates":
		to = &p.Resolution
	case "missing=default", "missing=null":
		to = &p.Missing
	case "return=minimal", "return=headers-only", "return=representation":
		to = &p.Return
	case "count=exact", "count=planned", "count=estimated":
		to = &p.Count
	case "tx=commit", "tx=rollback":
		to = &p.Tx
	case "read=replica", "read=primary":
		to = &p.Read
	case "handling=strict", "handling=lenient":
		to = &p.Handling
	default:
		switch {
		case kind == "timezone" && value != "":
			to = &p.Timezone
		case kind == "max-affected":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return false
			}

			if p.MaxAffected == nil {
				p.MaxAffected = &n
			}

			return true
		default:
			return false
		}
	}

	if *to == "" {
		*to = value
	}

	return true
}

// StrictError returns handling=strict's error for invalid preferences, else nil.
func (p Prefer) StrictError() error {
	if p.Handling != "strict" || len(p.Invalid) == 0 {
		return nil
	}

	return &Error{Status: 400, Code: "PGRST122", Message: "Invalid preferences given with handling=strict",
		Details: "Invalid preferences: " + strings.Join(p.Invalid, ", ")}
}

// Applied returns Preference-Applied's value with all preferences in p, or "" if there are none.
// The caller clears those that did not apply.
func (p Prefer) Applied() string {
	var b []byte
	for _, s := range [...]struct{ kind, value string }{
		{"resolution=", p.Resolution}, {"missing=", p.Missing}, {"return=", p.Return}, {"count=", p.Count},
		{"tx=", p.Tx}, {"handling=", p.Handling}, {"timezone=", p.Timezone}, {"read=", p.Read},
	} {
		if s.value != "" {
			b = append(append(comma(b), s.kind...), s.value...)
		}
	}

	if p.MaxAffected != nil {
		b = strconv.AppendInt(append(comma(b), "max-affected="...), *p.MaxAffected, 10)
	}

	return string(b)
}

func comma(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	return append(b, ", "...)
}

// ParseRange parses the Range header: first and last row, counted from 0. ok is false for another
// form, which is ignored. limit is nil for an open range, and below 1 if the range ends before it
// begins, which the caller rejects.
func ParseRange(header string) (offset int64, limit *int64, ok bool) {
	first, last, ok := strings.Cut(header, "-")
	if !ok || first == "" || !digits(first) || !digits(last) {
		return 0, nil, false
	}

	offset = parseClamped(first)
	if last == "" {
		return offset, nil, true
	}

	end := parseClamped(last)
	if end == math.MaxInt64 {
		return offset, nil, true
	}

	n := end - offset + 1
	return offset, &n, true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || '9' < s[i] {
			return false
		}
	}

	return true
}

// parseClamped parses the digits in s. It returns the maximum int64 beyond that.
func parseClamped(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return math.MaxInt64
	}

	return n
}
