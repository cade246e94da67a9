package form

import (
	"bytes"
	"encoding/json"
)

// Opt is a JSON object member that may be absent, null or a T. The zero value is absent. It
// supports versions 1 and 2 of encoding/json.
type Opt[T any] struct {
	Named bool // the object has the member
	Value *T   // nil if absent or null
}

// UnmarshalJSON decodes null or a T.
func (o *Opt[T]) UnmarshalJSON(text []byte) error {
	*o = Opt[T]{Named: true}

	if bytes.Equal(text, []byte("null")) {
		return nil
	}

	o.Value = new(T)
	return json.Unmarshal(text, o.Value)
}
