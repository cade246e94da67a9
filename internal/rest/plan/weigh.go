package plan

import (
	"strings"
)

// tooLong is the name of a setting that never exists. The statement reads it when the body is too
// long, and so fails.
const tooLong = "socle: the answer is too long"

// weigh opens a SELECT around the answer's row that fails if the body exceeds MaxBody, so that a
// change whose answer cannot be delivered is rolled back. The check reads a computed value and
// costs a microsecond.
func (b *builder) weigh() {
	switch most := b.r.MaxBody; {
	case most == 0:
		return
	case b.r.Format == Custom: // the value can be stored compressed
		b.text("select total, case when pg_catalog.octet_length(body) > ")
		b.int(int64(most))
	default:
		// pg_column_size is the only length of json without a copy; it includes the 4-byte header
		b.text("select total, case when pg_catalog.pg_column_size(body) > ")
		b.int(int64(most) + 4)
	}

	b.text(
		" then pg_catalog.current_setting('" + tooLong +
			"')::bigint else page end, location, headers, status, inserted, body from (",
	)
}

// weighed closes the SELECT that weigh opened.
func (b *builder) weighed() {
	if b.r.MaxBody > 0 {
		b.text(") as answer(total, page, location, headers, status, inserted, body)")
	}
}

// TooLong reports whether a statement failed because its body is too long, by the SQLSTATE and
// message of the error.
func TooLong(code, message string) bool { return code == "42704" && strings.Contains(message, tooLong) }
