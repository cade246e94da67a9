package pgdump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Entry is an entry in a dump's table of contents. pg_restore --list's output cannot be parsed
// reliably, since names can contain spaces and line breaks.
type Entry struct {
	ID                     int
	Tag, Desc              string
	Definition, Drop, Copy string // statements
	Namespace, Owner       string
	Depends                []int // IDs
	PostData               bool  // follows the rows: an index, a trigger, a materialized view's rows

	definition, drop, owner span // statements, and the name of Owner
}

// span is a text's place in a file.
type span struct{ start, length int64 }

// Supported custom format versions: from PostgreSQL 12 to PostgreSQL 17 and 18.
const (
	oldestFormat = 14
	newestFormat = 16
)

// sectionPostData is the section for entries that follow the rows.
const sectionPostData = 4

// Limits for a table of contents. An untrusted dump can occupy at most maxTextSize bytes in memory.
const (
	readStep         = 4 << 10 // bytes read per step
	maxEntries       = 2_000_000
	maxTOCSize       = 1 << 29 // bytes in total
	maxTextSize      = 1 << 26 // retained bytes
	maxSchemaText    = 1 << 24 // the same, with all statements
	maxSchemaEntries = 50_000  // the same
)

// definedKinds are the entry kinds whose statements are retained; pg_restore executes all others.
var definedKinds = []string{"ACL", "DEFAULT ACL", "POLICY"}

// Errors for a table of contents.
var (
	ErrTOC         = errors.New("cannot read the dump's table of contents")
	ErrLargeSchema = errors.New("the statements of the dump exceed the limit")
)

// ReadTOC reads the table of contents at the start of a dump in pg_dump's custom format. It retains
// the statements for a few entry kinds, and no dependencies.
func ReadTOC(r io.Reader) ([]Entry, error) {
	return (&tocReader{maxText: maxTextSize, maxEntries: maxEntries}).readEntries(r)
}

// ReadSchema is [ReadTOC] with all statements and dependencies, for a schema dump. It fails with
// [ErrLargeSchema] if they exceed some megabytes.
func ReadSchema(r io.Reader) ([]Entry, error) {
	return (&tocReader{maxText: maxSchemaText, maxEntries: maxSchemaEntries, all: true}).readEntries(r)
}

func (t *tocReader) readEntries(r io.Reader) (entries []Entry, err error) {
	t.r = bufio.NewReader(io.LimitReader(r, maxTOCSize))
	defer func() {
		if t.err != nil {
			entries, err = nil, fmt.Errorf("%w: %w", ErrTOC, t.err)
		}
	}()

	if magic := string(t.bytes(5)); magic != "PGDMP" {
		t.fail("unexpected start %q", magic)
		return nil, nil
	}

	head := t.bytes(6) // major, minor, revision, size of an integer, size of an offset, format

	if t.err != nil {
		return nil, nil
	}

	minor := int(head[1])
	if head[0] != 1 || minor < oldestFormat || minor > newestFormat || head[5] != 1 || head[3] != 4 || head[4] > 8 {
		t.fail("unsupported format %d.%d", head[0], minor)
		return nil, nil
	}

	offset := int(head[4])

	if minor >= 15 {
		t.bytes(1) // compression
	} else {
		t.number()
	}

	for range 7 { // creation time
		t.number()
	}

	for range 3 { // database, versions of server and pg_dump
		t.text()
	}

	n := t.number()
	if n < 0 || n > t.maxEntries {
		t.fail("%d entries: %w", n, ErrLargeSchema)
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
	r          *bufio.Reader
	maxText    int // bytes
	maxEntries int
	all        bool    // retain all statements and dependencies
	at         int64   // bytes read
	textSize   int     // bytes
	buffer     [5]byte // bytes of a number
	err        error
}

func (t *tocReader) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

func (t *tocReader) entry(minor, offset int) Entry {
	e := Entry{ID: t.number()}
	t.number() // has data
	t.skip()   // catalog
	t.skip()   // OID
	e.Tag, e.Desc = t.text(), t.text()
	e.PostData = t.number() == sectionPostData

	e.Definition, e.definition = t.placed(t.all || slices.Contains(definedKinds, e.Desc))
	e.Drop, e.drop = t.placed(t.all)
	e.Copy, e.Namespace = t.text(), t.text()
	t.skip() // tablespace
	t.skip() // access method

	if minor >= 16 {
		t.number() // relation kind
	}

	e.Owner, e.owner = t.placed(true)
	t.skip() // rows have OIDs

	for t.err == nil {
		id, more := t.optional()
		if !more {
			break
		}

		if n, err := strconv.Atoi(id); err == nil && t.all {
			e.Depends = append(e.Depends, n)
		}
	}

	t.bytes(1 + offset) // data offset
	return e
}

func (t *tocReader) bytes(n int) []byte {
	if t.err != nil {
		return make([]byte, min(n, readStep))
	}

	b := make([]byte, 0, min(n, readStep))
	for len(b) < n && t.err == nil { // grows with the data: a false length allocates nothing
		more := min(n-len(b), max(readStep, len(b)))
		b = slices.Grow(b, more)[:len(b)+more]
		_, t.err = io.ReadFull(t.r, b[len(b)-more:])
	}

	t.at += int64(len(b))
	return b
}

func (t *tocReader) number() int {
	b := t.buffer[:] // a table of contents is mostly numbers
	if t.err == nil {
		_, t.err = io.ReadFull(t.r, b)
		t.at += int64(len(b))
	}
	if t.err != nil {
		return 0
	}

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

// optional returns a text and whether it is present.
func (t *tocReader) optional() (string, bool) {
	n := t.number()
	if n < 0 || t.err != nil {
		return "", false
	}

	if t.textSize += n; t.textSize > t.maxText {
		t.fail("texts exceed %d bytes: %w", t.maxText, ErrLargeSchema)
		return "", false
	}

	return string(t.bytes(n)), true
}

// placed returns a text, if it is to be retained, and its place.
func (t *tocReader) placed(retain bool) (string, span) {
	if !retain {
		return "", t.skip()
	}

	s := t.text()
	return s, span{t.at - int64(len(s)), int64(len(s))}
}

// skip reads a text without retaining it, and returns its place.
func (t *tocReader) skip() span {
	n := int64(t.number())
	s := span{t.at, max(n, 0)}
	if n > 0 && t.err == nil {
		_, t.err = io.CopyN(io.Discard, t.r, n)
		t.at += n
	}

	return s
}
