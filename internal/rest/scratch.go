package rest

import (
	"fmt"
	"strings"
	"sync"
)

// keptMost is the size in bytes up to which a buffer is kept for the next request.
const maxPooledBuffer = 1 << 20

// scratch is memory that requests use one after another.
type scratch struct {
	settings []setting
	values   [][]byte // of the settings
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

// settingTextsMost bounds settingTexts: the settings of a project's functions can have any names.
const maxSettingsStatements = 1000

// settingTexts caches the statements that set settings, by the settings' names.
var settingsStatements = struct {
	sync.RWMutex
	known map[string]string
}{known: map[string]string{}}

// setting returns the statement that sets settings for the transaction, and fails before it does if the schema has another version; its
// arguments are in values.
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
	text, ok := settingsStatements.known[string(s.names)]
	settingsStatements.RUnlock()

	if !ok {
		text = settingsSQL(all, readOnly, v)
		settingsStatements.Lock()

		if len(settingsStatements.known) >= maxSettingsStatements {
			clear(settingsStatements.known)
		}

		settingsStatements.known[string(s.names)] = text
		settingsStatements.Unlock()
	}

	return text
}

// settingsSQL has the versions compared first. The cast fails when they differ: then PostgreSQL skips whatever comes after, and nothing
// has run. The query is a subselect since what that may read is settled by the login, before a setting changes the role.
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

// reserve makes room for the text of arguments, which then stays where it is while they are encoded.
func (s *scratch) reserve(lists ...[]any) {
	size, n := 1, 0 // an empty text is not nil
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

// encode returns arguments as PostgreSQL reads them: texts.
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
			return nil, fmt.Errorf("an argument of type %T", a)
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

// release gives the result's memory to the next request.
func (r *result) release() {
	if r.budgetBytes > 0 {
		r.budget.release(r.budgetBytes)
		r.budgetBytes = 0
	}

	if cap(r.buffer) <= maxPooledBuffer {
		resultPool.Put(r)
	}
}
