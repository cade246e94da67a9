package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxReferences = 100 // different ones in a batch
	maxSegments   = 8   // names and indexes in a reference
	// maxReferredTo bounds an answer that references read, in bytes: each segment parses its value.
	maxReferredTo = 256 << 10
)

// references are the values of a batch's references, by their texts.
type references struct{ values map[string]json.RawMessage }

func (r *references) forget() { r.values = nil }

var (
	// bodyReference matches {"$ref": "order.0.id"} in JSON. A string can't contain it, since its
	// quotes are escaped there, and neither can a member that escapes the $.
	bodyReference = regexp.MustCompile(`\{\s*"\$ref"\s*:\s*"([^"\\]*)"\s*\}`)
	// filterReference matches a filter whose whole value is a reference. PostgreSQL gets the value
	// as it is, so none can become a part of the query.
	filterReference = regexp.MustCompile(`^((?:not\.)?(?:eq|neq|gt|gte|lt|lte)\.)\$\{([^{}]*)\}$`)
	// argumentReference matches the argument of a function.
	argumentReference = regexp.MustCompile(`^()\$\{([^{}]*)\}$`)
)

// resolveBody replaces the references in a body by their values.
func (b *batch) resolveBody(body json.RawMessage, maxSize int64) ([]byte, error) {
	if !bytes.Contains(body, []byte(`"$ref"`)) {
		return body, nil
	}

	var out []byte
	end := 0
	for _, m := range bodyReference.FindAllSubmatchIndex(body, -1) {
		value, err := b.valueOf(string(body[m[2]:m[3]]))
		if err != nil {
			return nil, err
		}
		if int64(len(out)+m[0]-end+len(value)) > maxSize {
			return nil, tooLarge()
		}

		out = append(append(out, body[end:m[0]]...), value...)
		end = m[1]
	}

	return append(out, body[end:]...), nil
}

// resolvePath replaces the references in the filters of a path by their texts.
func (b *batch) resolvePath(o *operation) (string, error) {
	path, raw, _ := strings.Cut(o.Path, "?")
	if !strings.Contains(o.Path, "${") {
		return o.Path, nil
	}

	isCall := o.Method == http.MethodGet && strings.HasPrefix(strings.TrimPrefix(path, "/"), "rpc/")
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		if !strings.Contains(pair, "${") {
			continue
		}

		name, value, _ := strings.Cut(pair, "=")
		m := filterReference.FindStringSubmatch(value)
		if m == nil && isCall {
			m = argumentReference.FindStringSubmatch(value)
		}
		if m == nil || strings.Contains(name, "${") {
			return "", invalidBatch("a reference is the whole value of eq, neq, gt, gte, lt or lte: " + pair)
		}

		text, err := b.textOf(m[2])
		if err != nil {
			return "", err
		}
		pairs[i] = name + "=" + m[1] + url.QueryEscape(text)
	}

	if strings.Contains(path, "${") {
		return "", invalidBatch("a reference is no part of a name")
	}

	return path + "?" + strings.Join(pairs, "&"), nil
}

// textOf returns the text of a reference to a string, number or boolean.
func (b *batch) textOf(reference string) (string, error) {
	value, err := b.valueOf(reference)
	if err != nil {
		return "", err
	}

	value = bytes.TrimSpace(value)
	switch value[0] {
	case '"':
		var text string
		err := json.Unmarshal(value, &text)
		return text, err
	case '{', '[', 'n':
		return "", invalidBatch("the reference " + reference + " is to no string, number or boolean")
	}

	return string(value), nil
}

// valueOf returns the value of a reference, such as order.0.id.
func (b *batch) valueOf(reference string) (json.RawMessage, error) {
	if value, ok := b.references.values[reference]; ok {
		return value, nil
	}
	if len(b.references.values) >= maxReferences {
		return nil, invalidBatch("a batch has at most " + strconv.Itoa(maxReferences) + " different references")
	}

	id, path, _ := strings.Cut(reference, ".")
	value := b.answerOf(id)
	if strings.Count(reference, ".") > maxSegments {
		value = nil
	}
	for _, name := range strings.Split(path, ".") {
		if path != "" && value != nil {
			value = member(value, name)
		}
	}
	if value == nil {
		return nil, invalidBatch("the reference " + reference + " is to nothing in the answers before")
	}

	if b.references.values == nil {
		b.references.values = map[string]json.RawMessage{}
	}
	b.references.values[reference] = value

	return value, nil
}

// answerOf returns the body of an operation that has run, or nil.
func (b *batch) answerOf(id string) json.RawMessage {
	for i, answer := range b.answers {
		if id != "" && b.operations[i].ID == id && len(answer.body) > 0 && len(answer.body) <= maxReferredTo &&
			answer.isJSON() {
			return answer.body
		}
	}

	return nil
}

// member returns a member of an object, or an element of an array by its index. It returns nil
// without one.
func member(value json.RawMessage, name string) json.RawMessage {
	value = bytes.TrimSpace(value)
	if value[0] == '[' {
		var all []json.RawMessage
		i, err := strconv.Atoi(name)
		if err != nil || json.Unmarshal(value, &all) != nil || i < 0 || i >= len(all) {
			return nil
		}

		return all[i]
	}

	var all map[string]json.RawMessage
	if json.Unmarshal(value, &all) != nil {
		return nil
	}

	return all[name]
}
