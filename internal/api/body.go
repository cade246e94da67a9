package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/httpx"
)

const (
	maxBody          = 1 << 20  // bytes of a JSON body
	maxAnonymousBody = 16 << 10 // bytes of a JSON body that anonymous callers may send
	maxValues        = 60_000   // JSON values parsed from a body
	bodyReadTimeout  = 30 * time.Second

	uncountedBody = 16 << 10 // bytes of a body that do not count against the budget
	// Memory per byte of a body: the text, the parsed values and the input struct.
	bodyMemoryFactor = 4
	budgetTimeout    = 2 * time.Second

	// Concurrent decodings of large bodies. Member names take up to 15 times their size while they
	// are decoded.
	maxDecodings = 4
)

// maxBodyBytes returns the maximum size of the operation's JSON body in bytes.
func (op Operation) maxBodyBytes() int64 {
	if op.Access.kind == kindAnonymous || op.Access.kind == kindOptionalUser {
		return maxAnonymousBody
	}
	return maxBody
}

// readJSON reads a JSON body and keeps only the members that the operation declares. release
// returns the reserved memory; it is never nil.
func (rt *route) readJSON(
	ctx context.Context, w http.ResponseWriter, r *http.Request,
) (v any, release func(), err error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyReadTimeout)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return nil, noRelease, err
	}

	text, release, err := rt.readText(ctx, http.MaxBytesReader(w, r.Body, rt.op.maxBodyBytes()), r.ContentLength,
		rt.op.maxBodyBytes())
	if err != nil {
		return nil, release, err
	}

	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, release, err
	}

	v, err = rt.decode(text, rt.shape)
	if err != nil {
		return nil, release, malformed(err, "body")
	}

	if _, ok := v.(map[string]any); !ok {
		return nil, release, fault.New(fault.Invalid, "the body must be a JSON object").WithCode("malformed_json")
	}

	return v, release, nil
}

// decode is [parseJSON] with a limit on concurrent decodings of large texts.
func (s *Server) decode(text []byte, known *shape) (any, error) {
	if len(text) > uncountedBody {
		s.decoding <- struct{}{}

		defer func() { <-s.decoding }()
	}

	return parseJSON(text, known)
}

// malformed converts an error of parseJSON to a failure.
func malformed(err error, what string) error {
	if errors.Is(err, errTooManyValues) {
		return fault.New(fault.TooLarge, "the %s has more than %d values", what, maxValues)
	}
	return fault.New(fault.Invalid, "the %s is not JSON", what).WithCode("malformed_json").WithCause(err)
}

func noRelease() {}

// readText reads at most limit bytes. length is the announced length, or -1. A text larger than
// uncountedBody waits for memory in the budget before it is read.
func (s *Server) readText(
	ctx context.Context, body io.Reader, length, limit int64,
) (text []byte, release func(), err error) {
	tooLarge := fault.New(fault.TooLarge, "the body is larger than %d bytes", limit)
	if length > limit {
		return nil, noRelease, tooLarge
	}

	var start []byte
	if length < 0 {
		start, err = io.ReadAll(io.LimitReader(body, min(limit, uncountedBody)+1))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, noRelease, tooLarge.WithCause(err)
		}
		if err != nil || len(start) <= uncountedBody {
			return start, noRelease, incompleteJSON(err)
		}

		length = limit
	}

	release = noRelease
	if length > uncountedBody {
		if release, err = s.reserveMemory(ctx, length*bodyMemoryFactor); err != nil {
			return nil, noRelease, err
		}
	}

	buffer := bytes.NewBuffer(make([]byte, 0, length+bytes.MinRead))
	buffer.Write(start)

	_, err = buffer.ReadFrom(body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || int64(buffer.Len()) > limit {
		return nil, release, tooLarge.WithCause(err)
	}

	return buffer.Bytes(), release, incompleteJSON(err)
}

func incompleteJSON(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Invalid, "the body is incomplete").WithCode("incomplete_body").WithCause(err)
}

// reserveMemory reserves n bytes of the body budget for the caller: for their user, or for their
// network if anonymous.
func (s *Server) reserveMemory(ctx context.Context, n int64) (release func(), err error) {
	owner := httpx.Network(httpx.From(ctx).Client)
	if user := caller(ctx).User; user != uuid.Nil {
		owner = user.String()
	}

	waitCtx, cancel := context.WithTimeout(ctx, budgetTimeout)
	defer cancel()

	release, err = s.bodies.Take(waitCtx, owner, n)
	if err != nil {
		errBusy := fault.New(fault.TooMany, "too many large requests are in flight; try again later").
			WithCode("too_busy").WithCause(err)
		errBusy.RetryAfter = budgetTimeout

		return noRelease, errBusy
	}

	return release, nil
}

// shape selects the values of a JSON text that the parser keeps. It skips members that the
// operation does not declare.
type shape struct {
	kind     string            // JSON type of the schema; "" keeps any value as text
	members  map[string]*shape // members of an object; nil keeps all
	items    *shape            // items of an array
	maxItems int               // the parser keeps one more item, to detect the excess
}

var anyValue = &shape{}

// shapeBuilder converts schemas to shapes.
type shapeBuilder struct {
	registry huma.Registry
	built    map[*huma.Schema]*shape // schemas may be recursive
}

func (m shapeBuilder) build(s *huma.Schema) *shape {
	for s.Ref != "" {
		s = m.registry.SchemaFromRef(s.Ref)
	}

	if result, ok := m.built[s]; ok {
		return result
	}

	result := &shape{kind: s.Type}
	m.built[s] = result

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
	}

	return result
}

// buildNormalized adds the variants that a [normalizer] accepts: one object instead of a list, and
// column members in snake_case.
func (m shapeBuilder) buildNormalized(s *huma.Schema) *shape {
	root := m.build(s)
	objects := []*shape{root}
	for _, list := range root.members {
		if list.items != nil && list.items.members != nil {
			objects = append(objects, list.items)
		}
	}

	for _, o := range objects[1:] {
		for name, member := range o.members {
			if _, own := root.members[name]; !own {
				root.members[name] = member
			}
		}
	}

	for _, o := range objects {
		for snake, camel := range snakeNames {
			if member, ok := o.members[camel]; ok {
				o.members[snake] = member
			}
		}
	}

	return root
}

// number is the text of a JSON number. Validation sees it before any rounding.
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
		if s.members != nil {
			member = s.members[key]
		}

		if member == nil {
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
