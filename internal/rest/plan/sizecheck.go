package plan

import (
	"strings"
)

// tooLongSetting is the name of a setting that never exists. The statement reads it when the body
// is too long, and so fails.
const tooLongSetting = "socle: the answer is too long"

// openSizeCheck opens a SELECT around the answer's row that fails if the body exceeds MaxBody, so
// that a change whose answer cannot be delivered is rolled back. The check reads a computed value
// and costs a microsecond.
func (b *builder) openSizeCheck() {
	switch limit := b.r.MaxBody; {
	case limit == 0:
		return
	case b.r.Format == Custom: // the value can be stored compressed
		b.text("select total, case when pg_catalog.octet_length(body) > ")
		b.int(int64(limit))
	default:
		// pg_column_size is the only length of json without a copy; it includes the 4-byte header
		b.text("select total, case when pg_catalog.pg_column_size(body) > ")
		b.int(int64(limit) + 4)
	}

	b.text(
		" then pg_catalog.current_setting('" + tooLongSetting +
			"')::bigint else page end, location, headers, status, inserted, body from (",
	)
}

// closeSizeCheck closes the SELECT that openSizeCheck opened.
func (b *builder) closeSizeCheck() {
	if b.r.MaxBody > 0 {
		b.text(") as answer(total, page, location, headers, status, inserted, body)")
	}
}

// IsTooLong reports whether a statement failed because its body is too long, by the SQLSTATE and
// message of the error.
func IsTooLong(code, message string) bool {
	return code == "42704" && strings.Contains(message, tooLongSetting)
}
