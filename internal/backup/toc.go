package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
)

// entry is an entry of a dump's table of contents. What pg_restore --list prints of it can't be taken apart: names
// may hold spaces and line breaks.
type entry struct {
	id               int
	tag, desc        string
	definition, copy string // statements
	namespace, owner string
}

// The versions of the custom format that are read here: of PostgreSQL 12 and of 17 to 18.
const (
	oldestFormat = 14
	newestFormat = 16
)

// Bounds of what is taken for a table of contents. Who made a dump can have as much of it kept in memory as mostKept.
const (
	atOnce       = 4 << 10 // bytes
	mostEntries  = 2_000_000
	mostContents = 1 << 29 // bytes of all of it
	mostKept     = 1 << 26 // bytes of the texts that are kept of it
)

// defined are the kinds of entries whose statements are kept: pg_restore runs those of the others.
var defined = []string{"ACL", "DEFAULT ACL", "POLICY"}

// errContents says that the table of contents can't be read.
var errContents = errors.New("the dump has no table of contents that this version reads")

// contents reads the table of contents at the beginning of a dump in pg_dump's custom format.
func contents(r io.Reader) (entries []entry, err error) {
	t := &tocReader{r: bufio.NewReader(io.LimitReader(r, mostContents))}
	defer func() {
		if t.err != nil {
			entries, err = nil, fmt.Errorf("%w: %w", errContents, t.err)
		}
	}()

	if magic := string(t.bytes(5)); magic != "PGDMP" {
		t.fail("it begins with %q", magic)
		return nil, nil
	}

	head := t.bytes(6) // major, minor, revision, size of a number, size of an offset, format

	if t.err != nil {
		return nil, nil
	}

	minor := int(head[1])
	if head[0] != 1 || minor < oldestFormat || minor > newestFormat || head[5] != 1 || head[3] != 4 || head[4] > 8 {
		t.fail("its format is %d.%d", head[0], minor)
		return nil, nil
	}

	offset := int(head[4])

	if minor >= 15 {
		t.bytes(1) // compression
	} else {
		t.number()
	}

	for range 7 { // when it was made
		t.number()
	}

	for range 3 { // database, versions of server and pg_dump
		t.text()
	}

	n := t.number()
	if n < 0 || n > mostEntries {
		t.fail("it has %d entries", n)
	}

	for range n {
		if t.err != nil {
			return nil, nil
		}
		entries = append(entries, t.entry(minor, offset))
	}

	return entries, nil
}

type tocReader struct {
	r    *bufio.Reader
	kept int // bytes
	err  error
}

func (t *tocReader) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

func (t *tocReader) entry(minor, offset int) entry {
	e := entry{id: t.number()}
	t.number() // whether it has data
	t.skip()   // catalogue
	t.skip()   // oid
	e.tag, e.desc = t.text(), t.text()
	t.number() // section

	if slices.Contains(defined, e.desc) {
		e.definition = t.text()
	} else {
		t.skip()
	}

	t.skip() // the statement that drops it
	e.copy, e.namespace = t.text(), t.text()
	t.skip() // tablespace
	t.skip() // access method

	if minor >= 16 {
		t.number() // kind of relation
	}

	e.owner = t.text()
	t.skip() // whether rows have oids

	for t.err == nil {
		if _, more := t.optional(); !more { // dependencies
			break
		}
	}

	t.bytes(1 + offset) // where its data are
	return e
}

func (t *tocReader) bytes(n int) []byte {
	if t.err != nil {
		return make([]byte, min(n, atOnce))
	}

	b := make([]byte, 0, min(n, atOnce))
	for len(b) < n && t.err == nil { // a length that is not true takes no memory
		more := min(n-len(b), max(atOnce, len(b)))
		b = slices.Grow(b, more)[:len(b)+more]
		_, t.err = io.ReadFull(t.r, b[len(b)-more:])
	}

	return b
}

func (t *tocReader) number() int {
	b := t.bytes(5)
	n := int(b[1]) | int(b[2])<<8 | int(b[3])<<16 | int(b[4])<<24
	if b[0] != 0 {
		return -n
	}

	return n
}

func (t *tocReader) text() string {
	s, _ := t.optional()
	return s
}

// optional returns a text and whether there is one.
func (t *tocReader) optional() (string, bool) {
	n := t.number()
	if n < 0 || t.err != nil {
		return "", false
	}

	if t.kept += n; t.kept > mostKept {
		t.fail("it has texts of more than %d bytes", mostKept)
		return "", false
	}

	return string(t.bytes(n)), true
}

// skip passes over a text.
func (t *tocReader) skip() {
	if n := t.number(); n > 0 && t.err == nil {
		_, t.err = io.CopyN(io.Discard, t.r, int64(n))
	}
}
