package httpx

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
)

// WrongType returns the path to the JSON member whose type made [json.Unmarshal] fail, such as
// user/names/0, and the right type with an article. The path is empty for another error and for a
// body that is no object.
func WrongType(body []byte, err error) (path, want string) {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return "", ""
	}

	return pathAt(body, e.Offset), jsonType(e.Type)
}

// level is an object or a list around a position in a JSON text.
type level struct {
	object bool
	name   string // current member's name or index
	length int    // number of members so far
	value  bool   // the object's next token is a value
}

// pathAt returns the path to the value whose first token ends at or spans an offset.
func pathAt(body []byte, offset int64) string {
	tokens := json.NewDecoder(bytes.NewReader(body))
	var levels []level
	var path []string

	for tokens.InputOffset() < offset {
		t, err := tokens.Token()
		if err != nil {
			return "" // the text was parsed before
		}

		if t == json.Delim('}') || t == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}

		if len(levels) > 0 {
			l := &levels[len(levels)-1]
			if l.object && !l.value {
				l.name, l.value = t.(string), true
				continue
			}
			if !l.object {
				l.name = strconv.Itoa(l.length)
			}
			l.length, l.value = l.length+1, false
		}

		path = path[:0]
		for _, l := range levels {
			path = append(path, l.name)
		}

		if t == json.Delim('{') || t == json.Delim('[') {
			levels = append(levels, level{object: t == json.Delim('{')})
		}
	}

	return strings.Join(path, "/")
}

// jsonType returns the JSON type that unmarshals into a Go type, with an article.
func jsonType(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}

	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int64:
		return "an integer of 64 bits"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	}

	return "an object"
}
