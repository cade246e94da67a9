package operation

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// shape selects the values in a JSON text that the parser keeps. It skips members that the
// operation does not declare.
type shape struct {
	kind     string            // the schema's JSON type; "" keeps any value as text
	members  map[string]*shape // object members; nil keeps all
	values   *shape            // map values
	aliases  map[string]string // member by alternative spelling
	items    *shape            // array items
	maxItems int               // the parser keeps one more item, to detect the excess
}

var anyValue = &shape{}

// shapeBuilder converts schemas to shapes.
type shapeBuilder struct {
	registry huma.Registry
	shapes   map[*huma.Schema]*shape // schemas may be recursive
}

func (m shapeBuilder) build(s *huma.Schema) *shape {
	for s.Ref != "" {
		s = m.registry.SchemaFromRef(s.Ref)
	}

	if result, ok := m.shapes[s]; ok {
		return result
	}

	mustImplement(s)
	if s.Default != nil { // clients generated from the document would require the member
		panic(fmt.Sprintf("operation: a member of a body has a default: %+v", *s))
	}

	result := &shape{kind: s.Type}
	m.shapes[s] = result

	switch {
	case s.Type == huma.TypeArray:
		result.items, result.maxItems = m.build(s.Items), maxValues
		if s.MaxItems != nil {
			result.maxItems = *s.MaxItems
		}
	case s.Type == huma.TypeObject && len(s.Properties) > 0:
		result.members = map[string]*shape{}
		for name, property := range s.Properties {
			result.members[name] = m.build(property)
		}
	case valuesOf(s) != nil:
		result.values = m.build(valuesOf(s))
	}

	return result
}

// valuesOf returns the schema for a map's values, nil for another schema.
func valuesOf(s *huma.Schema) *huma.Schema {
	values, _ := s.AdditionalProperties.(*huma.Schema)
	return values
}

// acceptForms lets one item stand for the whole list, unless list is "", and lets aliases stand for
// members, in the body and in its lists' items.
func (s *shape) acceptForms(list string, aliases map[string]string) {
	objects := []*shape{s}
	for _, member := range s.members {
		if member.items != nil && member.items.members != nil {
			objects = append(objects, member.items)
		}
	}

	if list != "" {
		for name, member := range s.members[list].items.members {
			if _, ok := s.members[name]; !ok {
				s.members[name] = member
			}
		}
	}

	for _, o := range objects {
		for alias, name := range aliases {
			if _, ok := o.members[name]; ok {
				if o.aliases == nil {
					o.aliases = map[string]string{}
				}
				o.aliases[alias] = name
			}
		}
	}
}

// number is a JSON number's text. Validation sees it before any rounding.
type number string

// numberOptions marshals a number as its original text.
var numberOptions = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, n number) error {
	return e.WriteValue(jsontext.Value(n))
}))

var errTooManyValues = errors.New("too many values")

// parseJSON parses one JSON value to nil, bool, string, number, []any or map[string]any, or a
// jsontext.Value where the shape accepts any value. It rejects ambiguous input: duplicate members,
// invalid UTF-8, lone surrogates and trailing bytes. A list or an object where the shape expects
// another type becomes empty.
func parseJSON(text []byte, s *shape) (any, error) {
	p := parser{Decoder: jsontext.NewDecoder(bytes.NewBuffer(text))}
	v, err := p.value(s)
	if err != nil {
		return nil, err
	}

	if _, err := p.ReadToken(); err != io.EOF {
		return nil, fmt.Errorf("trailing bytes after the value")
	}

	return v, nil
}

type parser struct {
	*jsontext.Decoder
	values int
}

func (p *parser) value(s *shape) (any, error) {
	if p.values++; p.values > maxValues {
		return nil, errTooManyValues
	}

	switch kind := p.PeekKind(); {
	case kind == '[' && s.kind == huma.TypeArray:
		return p.array(s)
	case kind == '{' && s.kind == huma.TypeObject:
		return p.object(s)
	case (kind == '[' || kind == '{') && s.kind == "":
		v, err := p.ReadValue()
		return v.Clone(), err
	case kind == '[':
		return []any{}, p.SkipValue()
	case kind == '{':
		return map[string]any{}, p.SkipValue()
	}

	return p.scalar()
}

func (p *parser) scalar() (any, error) {
	t, err := p.ReadToken()
	if err != nil {
		return nil, err
	}

	switch t.Kind() {
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		return number(t.String()), nil
	}

	return nil, nil
}

func (p *parser) array(s *shape) (any, error) {
	if _, err := p.ReadToken(); err != nil {
		return nil, err
	}

	array := []any{}
	for p.PeekKind() != ']' {
		if len(array) > s.maxItems {
			if err := p.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}

		v, err := p.value(s.items)
		if err != nil {
			return nil, err
		}

		array = append(array, v)
	}

	_, err := p.ReadToken()
	return array, err
}

func (p *parser) object(s *shape) (any, error) {
	if _, err := p.ReadToken(); err != nil {
		return nil, err
	}

	object := map[string]any{}
	for p.PeekKind() != '}' {
		name, err := p.ReadToken()
		if err != nil {
			return nil, err
		}

		key, member := name.String(), anyValue
		canonical, isAlias := s.aliases[key]
		_, both := object[canonical]
		if isAlias {
			key = canonical
		}
		switch {
		case s.members != nil:
			member = s.members[key]
		case s.values != nil:
			member = s.values
		}

		if member == nil || (isAlias && both) {
			if err := p.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}

		if object[key], err = p.value(member); err != nil {
			return nil, err
		}
	}

	_, err := p.ReadToken()
	return object, err
}
