package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/socle-dev/socle/docs"
)

// operation is an operation in the OpenAPI document, reduced to the parts that commands need.
type operation struct {
	Method, Path string
	ID           string `json:"operationId"`
	Summary      string
	Description  string
	Parameters   []parameter
	RequestBody  *struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

// parameter is a path, query or header parameter of an operation.
type parameter struct {
	Name, In    string
	Required    bool
	Description string
	Schema      schema
}

// schema is a JSON schema, reduced to the parts that commands need.
type schema struct {
	Ref         string `json:"$ref"`
	Type        any    // a string, or a list of strings if null is allowed
	Description string
	Default     any
	Enum        []any
	Format      string
	Properties  map[string]schema
	Required    []string
	Items       *schema
	OneOf       []schema // of a body: one item, or a list of items
}

// description is the OpenAPI document.
type description struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

// describe returns the OpenAPI document of this binary. It is parsed once and must not be modified.
var describe = sync.OnceValues(func() (*description, error) {
	text, err := docs.OpenAPI()
	if err != nil {
		return nil, err
	}

	var d description
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("parse the OpenAPI document: %w", err)
	}

	return &d, nil
})

// operations returns all operations, ordered by path and method.
func (d *description) operations() []operation {
	var all []operation
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			o := d.Paths[path][method]
			o.Method, o.Path = strings.ToUpper(method), path
			all = append(all, o)
		}
	}

	return all
}

// takes reports whether an operation has a parameter.
func (o operation) takes(in, name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p parameter) bool { return p.In == in && p.Name == name })
}

// resolve follows references.
func (d *description) resolve(s schema) schema {
	for s.Ref != "" {
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// body returns the media type and the schema of an operation's request body; "" without one.
func (d *description) body(o operation) (media string, s schema) {
	if o.RequestBody == nil {
		return "", schema{}
	}

	// Of several media types, prefer the one with a file name.
	if form, ok := o.RequestBody.Content["multipart/form-data"]; ok {
		return "multipart/form-data", d.resolve(form.Schema)
	}

	for media, content := range o.RequestBody.Content {
		return media, d.resolve(content.Schema)
	}

	return "", schema{}
}

// answersFile reports whether the response is a file instead of an envelope.
func (o operation) answersFile() bool {
	_, json := o.Responses["200"].Content["application/json"]
	return !json && len(o.Responses["200"].Content) > 0
}

// is reports whether the schema allows values of a JSON type.
func (s schema) is(kind string) bool {
	switch t := s.Type.(type) {
	case string:
		return t == kind
	case []any:
		return slices.Contains(t, any(kind))
	}

	return false
}

// split splits a name in camelCase or snake_case into lower-case words. An initialism is one word.
func split(name string) []string {
	var words []string
	letters := []rune(name)
	start := 0
	for i := 1; i <= len(letters); i++ {
		switch {
		case i < len(letters) && letters[i] != '_' && (!unicode.IsUpper(letters[i]) ||
			(unicode.IsUpper(letters[i-1]) && (i+1 == len(letters) || unicode.IsUpper(letters[i+1])))):
			continue
		}

		if word := strings.ToLower(strings.Trim(string(letters[start:i]), "_")); word != "" {
			words = append(words, word)
		}

		start = i
	}

	return words
}

// kebab converts a name to kebab-case, for flags.
func kebab(name string) string { return strings.Join(split(name), "-") }
