package rest

import (
	"fmt"
	"strings"
	"sync"
)

// maxPooledBuffer is the size in bytes up to which a buffer is reused.
const maxPooledBuffer = 1 << 20

// scratch has the buffers of one request. It is pooled.
type scratch struct {
	settings []setting
	values   [][]byte // of settings
	args     [][]byte
	text     []byte // of the arguments
	names    []byte // of the settings
	out      []byte // messages
	pending  []pendingReply
}

var scratchPool = sync.Pool{New: func() any { return new(scratch) }}

func newScratch() *scratch { return scratchPool.Get().(*scratch) }

func (s *scratch) release() {
	clear(s.settings)
	clear(s.values)
	clear(s.args)
	clear(s.pending)
	s.settings, s.values, s.args, s.pending = s.settings[:0], s.values[:0], s.args[:0], s.pending[:0]
	if cap(s.text) <= maxPooledBuffer && cap(s.out) <= maxPooledBuffer {
		s.text = s.text[:0]
		scratchPool.Put(s)
	}
}

// maxSettingsStatements bounds settingsStatements, since functions can set parameters of any name.
const maxSettingsStatements = 1000

// settingsStatements caches statements that set parameters, by the parameters' names.
var settingsStatements = struct {
	sync.RWMutex
	byNames map[string]string
}{byNames: map[string]string{}}

// settingsStatement returns the statement that sets parameters for the transaction. It first checks
// the schema version. Its arguments are in values.
func (s *scratch) settingsStatement(all []setting, readOnly bool, v schemaVersion) string {
	s.values = s.values[:0]
	s.names = s.names[:0]
	for _, set := range all {
		s.values = append(s.values, set.value)
		s.names = append(s.names, set.name...)
		s.names = append(s.names, ',')
	}

	if readOnly {
		s.names = append(s.names, '!')
	}

	if v.value != "" {
		s.values = append(s.values, []byte(v.value))
		s.names = append(s.names, v.query...)
	}

	settingsStatements.RLock()
	text, ok := settingsStatements.byNames[string(s.names)]
	settingsStatements.RUnlock()

	if !ok {
		text = settingsSQL(all, readOnly, v)
		settingsStatements.Lock()

		if len(settingsStatements.byNames) >= maxSettingsStatements {
			clear(settingsStatements.byNames)
		}

		settingsStatements.byNames[string(s.names)] = text
		settingsStatements.Unlock()
	}

	return text
}

// settingsSQL compares the versions first. The cast fails if they differ: PostgreSQL then skips the
// following messages, and nothing has run. The version query is a subselect, so its privileges are
// checked for the login, before a setting changes the role.
func settingsSQL(all []setting, readOnly bool, v schemaVersion) string {
	var b strings.Builder
	b.WriteString("select ")

	if v.value != "" {
		fmt.Fprintf(&b, "(case when (%s) operator(pg_catalog.=) $%d then '0' else '%s' end)::pg_catalog.int4, ",
			v.query, len(all)+1, staleCatalogMarker)
	}

	for i, set := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "pg_catalog.set_config('%s', $%d, true)", strings.ReplaceAll(set.name, "'", "''"), i+1)
	}

	if readOnly {
		b.WriteString(", pg_catalog.set_config('transaction_read_only', 'on', true)")
	}

	return b.String()
}

// reserve allocates the text of the arguments, so that encode does not move it.
func (s *scratch) reserve(lists ...[]any) {
	size, n := 1, 0 // an empty string must not be nil
	for _, args := range lists {
		n += len(args)

		for _, a := range args {
			if t, ok := a.(string); ok {
				size += len(t)
			}
		}
	}

	if cap(s.text) < size {
		s.text = make([]byte, 0, size)
	}
	if cap(s.args) < n {
		s.args = make([][]byte, 0, n)
	}

	s.text, s.args = s.text[:0], s.args[:0]
}

// encode returns arguments in PostgreSQL's text format.
func (s *scratch) encode(args []any) ([][]byte, error) {
	first := len(s.args)

	for _, a := range args {
		switch a := a.(type) {
		case nil:
			s.args = append(s.args, nil)
		case []byte:
			s.args = append(s.args, a)
		case string:
			start := len(s.text)
			s.text = append(s.text, a...)
			s.args = append(s.args, s.text[start:len(s.text):len(s.text)])
		default:
			return nil, fmt.Errorf("encode an argument: unsupported type %T", a)
		}
	}

	return s.args[first:len(s.args):len(s.args)], nil
}

var resultPool = sync.Pool{New: func() any { return new(result) }}

func newResult() *result {
	r := resultPool.Get().(*result)
	*r = result{total: -1, estimate: -1, inserted: -1, buffer: r.buffer[:0]}

	return r
}

// release returns the result to the pool and its bytes to the budget.
func (r *result) release() {
	if r.budgetBytes > 0 {
		r.budget.release(r.budgetBytes)
		r.budgetBytes = 0
	}

	if cap(r.buffer) <= maxPooledBuffer {
		resultPool.Put(r)
	}
}
