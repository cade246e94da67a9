package form

import (
	"bytes"
	"encoding/json"
)

// Opt is a member of a JSON object that may be absent, null or a T. Its zero value is absent.
// It decodes with encoding/json as well as with its second version.
type Opt[T any] struct {
	Named bool // the object has the member
	Value *T   // nil if it is absent or null
}

// UnmarshalJSON reads null or a T.
func (o *Opt[T]) UnmarshalJSON(text []byte) error {
	*o = Opt[T]{Named: true}

	if bytes.Equal(text, []byte("null")) {
		return nil
	}

	o.Value = new(T)
	return json.Unmarshal(text, o.Value)
}
