package event

import (
	"bytes"
	"encoding/json"
)

const (
	// maxPlainSize is a size in bytes up to which no row is nested more deeply than package json
	// reads. PostgreSQL reads deeper ones.
	maxPlainSize = 10_000
	maxScalar    = 1024 // bytes, as socle.small_members has it
)

// flatten replaces rows that package json refuses, since a member is nested too deeply, by what is
// left of an oversized row: short members that are neither objects nor arrays.
func (e *entry) flatten() {
	for _, row := range []*[]byte{&e.Record, &e.Old} {
		if len(*row) > maxPlainSize && !json.Valid(*row) {
			*row, e.Oversized = scalars(*row), true
		}
	}
}

// scalars returns the short members of a JSON object that are neither objects nor arrays. Tokens
// have no bound on their depth.
func scalars(row []byte) []byte {
	tokens := json.NewDecoder(bytes.NewReader(row))
	tokens.UseNumber()

	kept := []byte{'{'}
	var name []byte // the member's, between a name and its value
	for depth := 0; ; {
		token, err := tokens.Token()
		if err != nil {
			return append(kept, '}')
		}

		switch delim, isDelim := token.(json.Delim); {
		case isDelim && (delim == '{' || delim == '['):
			depth++
			continue
		case isDelim:
			if depth--; depth == 1 {
				name = nil
			}
			continue
		case depth > 1:
			continue
		}

		text, err := json.Marshal(token)
		switch {
		case err != nil:
			return append(kept, '}')
		case name == nil:
			name = text
			continue
		case len(text) <= maxScalar:
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			kept = append(append(append(kept, name...), ':'), text...)
		}
		name = nil
	}
}
