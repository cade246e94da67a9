package plan

import (
	"bytes"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/rest/query"
)

// MaxNames is PostgreSQL's maximum number of columns in a table. A function has fewer parameters,
// so a payload with more names fits neither.
const MaxNames = 1600

var (
	errBody error = &query.Error{Status: 400, Code: "PGRST102", Message: "Empty or invalid json"}
	errKeys error = &query.Error{Status: 400, Code: "PGRST102", Message: "All object keys must match"}
)

// Keys returns the member names of a JSON body's object, or of the objects in its array, which must
// all have the same names. Other values have none. For a body with more than [MaxNames] names, it
// returns the first MaxNames + 1. It fails with PGRST102 if the body is not valid JSON.
func Keys(body []byte) ([]string, error) {
	p, err := read(body)
	return p.names, err
}

// read parses the outline of a JSON body: the member names of its objects, whether it is an array,
// and the number of objects. A scalar has no rows. The time is linear in the length of the body.
func read(body []byte) (payload, error) {
	r := reader{body: body, decoder: jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))}
	if err := r.read(); err != nil {
		return payload{}, err
	}

	if _, err := r.decoder.ReadToken(); err != io.EOF {
		return payload{}, errBody
	}

	r.payload.names = r.names.list
	if len(r.payload.values) != len(r.payload.names) { // duplicate names, or too many
		r.payload.values = nil
	}

	return r.payload, nil
}

// reader parses a JSON body.
type reader struct {
	body    []byte
	decoder *jsontext.Decoder
	payload payload
	names   nameSet // names of the first object's members
	// by position of a name: the last object with that name, from 1; nil while all objects have the
	// same order
	seen []int
}

func (r *reader) read() error {
	switch r.decoder.PeekKind() {
	case '{':
		r.payload.rows = 1
		return r.firstObject(true)
	case '[':
		r.payload.list = true
		return r.elements()
	}

	r.payload.list = true

	if r.decoder.SkipValue() != nil {
		return errBody
	}

	return nil
}

func (r *reader) elements() error {
	d := r.decoder
	if _, err := d.ReadToken(); err != nil {
		return errBody
	}

	for ; d.PeekKind() != ']'; r.payload.rows++ {
		switch d.PeekKind() {
		case '{':
		case 0:
			return errBody
		default:
			if d.SkipValue() != nil {
				return errBody
			}
			return errKeys
		}

		next := r.nextObject
		if r.payload.rows == 0 {
			next = func() error { return r.firstObject(false) }
		}

		if err := next(); err != nil {
			return err
		}
	}

	if _, err := d.ReadToken(); err != nil {
		return errBody
	}

	return nil
}

// firstObject parses the first object, whose names the others must have. It collects the values if
// asked.
func (r *reader) firstObject(values bool) error {
	var scratch []byte
	return r.members(func(token jsontext.Value) error {
		name, err := jsontext.AppendUnquote(scratch[:0], token)
		if err != nil {
			return errBody
		}

		scratch = name

		if len(r.names.list) <= MaxNames && r.names.index(name) < 0 {
			r.names.add(string(name))
		}

		return nil
	}, func(value jsontext.Value) {
		if values && len(r.payload.values) <= MaxNames {
			end := r.decoder.InputOffset()
			// the decoder reuses its buffer
			r.payload.values = append(r.payload.values, r.body[end-int64(len(value)):end])
		}
	})
}

// nextObject parses an object after the first. It compares names one by one while they come in the
// same order.
func (r *reader) nextObject() error {
	names := r.names.list
	if len(names) > MaxNames { // more than any table has
		if r.decoder.SkipValue() != nil {
			return errBody
		}
		return nil
	}

	var scratch []byte
	row, matched, count, strange := r.payload.rows+1, 0, 0, false
	err := r.members(func(token jsontext.Value) error {
		if matched == count && matched < len(names) && plain(token, names[matched]) {
			matched, count = matched+1, count+1
			return nil
		}

		name, err := jsontext.AppendUnquote(scratch[:0], token)
		if err != nil {
			return errBody
		}

		scratch = name
		at := r.names.index(name)

		if r.seen == nil {
			r.seen = make([]int, len(names))
		}

		switch {
		case at < 0:
			strange = true
		case at >= matched && r.seen[at] != row:
			r.seen[at] = row
			count++
		}

		return nil
	}, nil)
	if err == nil && (strange || count != len(names)) {
		return errKeys
	}

	return err
}

// members parses an object. It passes each raw name to name, and each value to value unless value
// is nil.
func (r *reader) members(name func(jsontext.Value) error, value func(jsontext.Value)) error {
	d := r.decoder
	if _, err := d.ReadToken(); err != nil {
		return errBody
	}

	for d.PeekKind() == '"' {
		token, err := d.ReadValue()
		if err != nil {
			return errBody
		}

		if err := name(token); err != nil {
			return err
		}

		if value == nil {
			if d.SkipValue() != nil {
				return errBody
			}
			continue
		}

		v, err := d.ReadValue()
		if err != nil {
			return errBody
		}

		value(v)
	}

	if _, err := d.ReadToken(); err != nil {
		return errBody
	}

	return nil
}

// plain reports whether a JSON string without escapes equals a name.
func plain(token jsontext.Value, name string) bool {
	return len(token) == len(name)+2 && string(token[1:len(token)-1]) == name
}

// nameSet is a set of names in insertion order.
type nameSet struct {
	list      []string
	positions map[string]int // in list; nil while list is short
}

// maxLinearSearch is the maximum length of a list that is searched linearly.
const maxLinearSearch = 16

// index returns the position of a name, or -1.
func (s *nameSet) index(name []byte) int {
	if s.positions == nil {
		return slices.IndexFunc(s.list, func(n string) bool { return n == string(name) })
	}
	if at, ok := s.positions[string(name)]; ok {
		return at
	}

	return -1
}

// add appends a name that the set does not contain.
func (s *nameSet) add(name string) {
	s.list = append(s.list, name)
	if s.positions != nil {
		s.positions[name] = len(s.list) - 1
		return
	}

	if len(s.list) <= maxLinearSearch {
		return
	}

	s.positions = make(map[string]int, 2*maxLinearSearch)
	for i, n := range s.list {
		s.positions[n] = i
	}
}
