package session

import (
	"fmt"
	"strings"
	"sync"

	"github.com/socle-dev/socle/internal/actor"
)

// maxPooledBuffer is the maximum size of a reused buffer, in bytes.
const maxPooledBuffer = 1 << 20

// scratch has an execution's buffers.
type scratch struct {
	values [][]byte // settings' values
	args   [][]byte
	text   []byte // arguments' text
	names  []byte // settings' names
}

// reset drops the content, and buffers too large to keep.
func (s *scratch) reset() {
	clear(s.values)
	clear(s.args)
	*s = scratch{values: s.values[:0], args: s.args[:0], text: pooled(s.text), names: s.names[:0]}
}

// pooled returns an empty buffer for reuse, nil if it is too large.
func pooled(b []byte) []byte {
	if cap(b) > maxPooledBuffer {
		return nil
	}
	return b[:0]
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
func (s *scratch) settingsStatement(all []actor.Setting, readOnly bool, v Version) string {
	s.values = s.values[:0]
	s.names = s.names[:0]
	for _, set := range all {
		s.values = append(s.values, set.Value)
		s.names = append(s.names, set.Name...)
		s.names = append(s.names, ',')
	}

	if readOnly {
		s.names = append(s.names, '!')
	}

	if v.Value != "" {
		s.values = append(s.values, []byte(v.Value))
		s.names = append(s.names, v.Query...)
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
func settingsSQL(all []actor.Setting, readOnly bool, v Version) string {
	var b strings.Builder
	b.WriteString("select ")

	if v.Value != "" {
		fmt.Fprintf(&b, "(case when (%s) operator(pg_catalog.=) $%d then '0' else '%s' end)::pg_catalog.int4, ",
			v.Query, len(all)+1, staleCatalogMarker)
	}

	b.WriteString(actor.SettingsSQL(all))

	if readOnly {
		b.WriteString(", pg_catalog.set_config('transaction_read_only', 'on', true)")
	}

	return b.String()
}

// reserve allocates the arguments' text, so that encode does not move it.
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
