package object

import "encoding/json"

// HeaderNames are the upload headers that describe the bytes, beside the type and Cache-Control.
var HeaderNames = []string{"Content-Disposition", "Content-Encoding", "Content-Language", "Expires"}

// Headers are upload headers by their names in [HeaderNames].
type Headers map[string]string

// UnmarshalJSON reads stored headers. A restored backup's rows can have any JSON: it drops other
// headers, which would come from Socle's own origin, and values that are no texts.
func (h *Headers) UnmarshalJSON(text []byte) error {
	var values map[string]any
	_ = json.Unmarshal(text, &values) // without an object: none

	*h = Headers{}
	for _, name := range HeaderNames {
		if value, ok := values[name].(string); ok {
			(*h)[name] = value
		}
	}

	return nil
}
