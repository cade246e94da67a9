package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"socle/internal/api"
)

// operation is an operation of the platform API as its OpenAPI document describes it, as far as a command needs that.
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
	Description string
	Schema      schema
}

// schema is a JSON schema, as far as a command needs it.
type schema struct {
	Ref         string `json:"$ref"`
	Type        any    // a text, or a list of them where null is one
	Description string
	Default     any
	Enum        []any
	Format      string
	Properties  map[string]schema
	Required    []string
	Items       *schema
}

// description is the OpenAPI document.
type description struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

// describe returns the OpenAPI document of this very program, which is read once and changed by nobody.
var describe = sync.OnceValues(func() (*description, error) {
	var d description
	if err := json.Unmarshal(api.Document(), &d); err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}

	return &d, nil
})

// operations returns all operations in the order of their paths and methods.
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

// resolve follows a reference.
func (d *description) resolve(s schema) schema {
	for s.Ref != "" {
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// body returns the media type and the schema of what an operation takes; "" if it takes nothing.
func (d *description) body(o operation) (media string, s schema) {
	if o.RequestBody == nil {
		return "", schema{}
	}

	// of several forms, the one that a file has its name in
	if form, ok := o.RequestBody.Content["multipart/form-data"]; ok {
		return "multipart/form-data", d.resolve(form.Schema)
	}

	for media, content := range o.RequestBody.Content {
		return media, d.resolve(content.Schema)
	}

	return "", schema{}
}

// answersFile reports whether an operation answers with bytes and not with an envelope.
func (o operation) answersFile() bool {
	_, json := o.Responses["200"].Content["application/json"]
	return !json && len(o.Responses["200"].Content) > 0
}

// is reports whether a value of the schema may be of a type.
func (s schema) is(kind string) bool {
	switch t := s.Type.(type) {
	case string:
		return t == kind
	case []any:
		return slices.Contains(t, any(kind))
	}

	return false
}

// words splits an operation's id: a verb, and the noun in the plural, as commands are named. createFormField is create and form-fields.
func (o operation) words() (verb, noun string) {
	words := split(o.ID)
	verb = words[0]
	noun = strings.Join(words[1:], "-")

	return verb, plural(noun)
}

// split splits a name in camelCase, snake_case or both into words of lower case. An initialism is one word.
func split(name string) []string {
	var words []string
	letters := []rune(name)
	start := 0
	for i := 1; i <= len(letters); i++ {
		switch {
		case i < len(letters) && letters[i] != '_' && (!unicode.IsUpper(letters[i]) ||
			unicode.IsUpper(letters[i-1]) && (i+1 == len(letters) || unicode.IsUpper(letters[i+1]))):
			continue
		}

		if word := strings.ToLower(strings.Trim(string(letters[start:i]), "_")); word != "" {
			words = append(words, word)
		}

		start = i
	}

	return words
}

// kebab writes a name as flags are written.
func kebab(name string) string { return strings.Join(split(name), "-") }

// plural returns a noun's plural; what has none stays as it is.
func plural(noun string) string {
	switch {
	case noun == "", strings.HasSuffix(noun, "s"), noun == "sql", noun == "audit", noun == "history", noun == "totp",
		noun == "lint", noun == "openapi", noun == "me":
		return noun
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey"):
		return strings.TrimSuffix(noun, "y") + "ies"
	case strings.HasSuffix(noun, "x"):
		return noun + "es"
	}

	return noun + "s"
}
