package cli

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// operation is an operation in the OpenAPI document, reduced to the parts that commands need.
type operation struct {
	Method, Path string      `json:"-"`
	ID           string      `json:"operationId"`
	Summary      string      `json:",omitempty"`
	Description  string      `json:",omitempty"`
	Parameters   []parameter `json:",omitempty"`
	RequestBody  *struct {
		Content map[string]struct {
			Schema  schema
			Example json.RawMessage `json:",omitempty"`
		}
	} `json:",omitempty"`
	Responses map[string]struct {
		Content map[string]struct{} `json:",omitempty"`
	}
}

// parameter is a path, query or header parameter of an operation.
type parameter struct {
	Name, In    string
	Required    bool   `json:",omitempty"`
	Description string `json:",omitempty"`
	Example     any    `json:",omitempty"`
	Schema      schema
}

// schema is a JSON schema, reduced to the parts that commands need.
type schema struct {
	Ref         string            `json:"$ref,omitempty"`
	Type        any               `json:",omitempty"` // a string, or a list of strings if null is allowed
	Description string            `json:",omitempty"`
	Default     any               `json:",omitempty"`
	Enum        []any             `json:",omitempty"`
	Minimum     int               `json:",omitempty"`
	Format      string            `json:",omitempty"`
	Properties  map[string]schema `json:",omitempty"`
	Required    []string          `json:",omitempty"`
	Items       *schema           `json:",omitempty"`
	// AdditionalProperties is the schema of an object's values by name, or true.
	AdditionalProperties json.RawMessage `json:",omitempty"`
	OneOf                []schema        `json:",omitempty"` // alternatives of a body: one item, or a list of items
}

// description is the OpenAPI document, reduced to the parts that commands need. Its operations and
// schemas are parsed when a command needs them: to parse all takes longer than most commands.
type description struct {
	Operations []stored // ordered by path and method
	Schemas    map[string]json.RawMessage
}

// stored is an operation in a description.
type stored struct {
	ID, Method, Path string
	Text             json.RawMessage
}

func (s stored) operation() operation {
	o := operation{Method: s.Method, Path: s.Path}
	_ = json.Unmarshal(s.Text, &o) // Commands wrote it

	return o
}

// commands is the description of this binary, as [Commands] returns it.
//
//go:embed commands.json.gz
var commands []byte

// Commands reduces an OpenAPI document to the description that commands need.
func Commands(openAPI []byte) ([]byte, error) {
	var document struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]schema }
	}

	if err := json.Unmarshal(openAPI, &document); err != nil {
		return nil, fmt.Errorf("parse the OpenAPI document: %w", err)
	}

	d := description{Schemas: map[string]json.RawMessage{}}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			o := document.Paths[path][method]
			text, err := json.Marshal(o)
			if err != nil {
				return nil, err
			}

			d.Operations = append(d.Operations, stored{o.ID, strings.ToUpper(method), path, text})
		}
	}

	for name, s := range document.Components.Schemas {
		text, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}

		d.Schemas[name] = text
	}

	return json.Marshal(d)
}

// describe returns the description of this binary. It is read once and must not be modified.
var describe = sync.OnceValues(func() (*description, error) {
	r, err := gzip.NewReader(bytes.NewReader(commands))
	if err != nil {
		return nil, fmt.Errorf("read the description of the commands: %w", err)
	}

	var d description
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		return nil, fmt.Errorf("parse the description of the commands: %w", err)
	}

	return &d, nil
})

// operations returns the operations whose commands a noun groups, of all nouns if it is "".
func (d *description) operations(noun string) []operation {
	var all []operation
	for _, s := range d.Operations {
		if _, name := words(s.ID); noun == "" || name == noun {
			all = append(all, s.operation())
		}
	}

	return all
}

// takes reports whether an operation has a parameter.
func (o operation) takes(in, name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p parameter) bool { return p.In == in && p.Name == name })
}

// resolve follows references. The description of a reference precedes that of its schema.
func (d *description) resolve(s schema) schema {
	for s.Ref != "" {
		text, meaning := d.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")], s.Description
		s = schema{}
		_ = json.Unmarshal(text, &s) // Commands wrote it
		s.Description = cmp.Or(meaning, s.Description)
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
