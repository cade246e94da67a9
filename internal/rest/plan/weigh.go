package plan

import (
	"strings"
)

// tooLong is the name of a setting that there can't be: the statement asks for it when its body is too long, and so fails.
const tooLong = "socle: the answer is too long"

// weigh begins a select around that of the answer's row, which fails if the body is longer than it may be: so a change whose answer
// can't be told is not made. It looks at a value that is there by then, and costs a microsecond.
func (b *builder) weigh() {
	switch most := b.r.MaxBody; {
	case most == 0:
		return
	case b.r.Format == Custom: // may be what is stored, packed
		b.text("select total, case when pg_catalog.octet_length(body) > ")
		b.int(int64(most))
	default: // JSON has no length but this that takes no copy of it; it counts the value's own head
		b.text("select total, case when pg_catalog.pg_column_size(body) > ")
		b.int(int64(most) + 4)
	}

	b.text(
		" then pg_catalog.current_setting('" + tooLong +
			"')::bigint else page end, location, headers, status, inserted, body from (",
	)
}

// weighed ends what weigh begins.
func (b *builder) weighed() {
	if b.r.MaxBody > 0 {
		b.text(") as answer(total, page, location, headers, status, inserted, body)")
	}
}

// TooLong reports whether a statement failed because its body is too long, by the SQLSTATE and message of the failure.
func TooLong(code, message string) bool { return code == "42704" && strings.Contains(message, tooLong) }
