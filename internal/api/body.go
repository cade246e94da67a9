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
	maxValues        = 60_000   // maximum number of JSON values kept from a body
	bodyLag          = 30 * time.Second

	bodyAllowance = 16 << 10 // bytes of a body that do not count against the budget
	// Memory per byte of a body: the text, the parsed values and the input struct.
	bodyCost = 4
	bodyWait = 2 * time.Second

	// Concurrent decodings of large bodies. Member names take up to 15 times their size while they
	// are decoded.
	maxDecodings = 4
)

// mostBody returns the maximum size of the operation's JSON body in bytes.
func (op Operation) mostBody() int64 {
	if op.Access.by == byNobody || op.Access.by == byWhoever {
		return maxAnonymousBody
	}
	return maxBody
}

// readJSON reads a JSON body and keeps only the members that the operation declares. give releases
// the reserved memory; it is never nil.
func (rt *route) readJSON(ctx context.Context, w http.ResponseWriter, r *http.Request) (v any, give func(), err error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyLag)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, nothingTaken, err
	}

	text, give, err := rt.readText(ctx, http.MaxBytesReader(w, r.Body, rt.op.mostBody()), r.ContentLength,
		rt.op.mostBody())
	if err != nil {
		return nil, give, err
	}

	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, give, err
	}

	v, err = rt.decode(text, rt.shape)
	if err != nil {
		return nil, give, malformed(err, "body")
	}

	if _, ok := v.(map[string]any); !ok {
		return nil, give, fault.New(fault.Invalid, "the body must be a JSON object").WithCode("malformed_json")
	}

	return v, give, nil
}

// decode is [parseJSON] with a limit on concurrent decodings of large texts.
func (s *Server) decode(text []byte, known *shape) (any, error) {
	if len(text) > bodyAllowance {
		s.decoding <- struct{}{}

		defer func() { <-s.decoding }()
	}

	return parseJSON(text, known)
}

// malformed converts an error of parseJSON to a failure.
func malformed(err error, what string) error {
	if errors.Is(err, errManyValues) {
		return fault.New(fault.TooLarge, "the %s has more than %d values", what, maxValues)
	}
	return fault.New(fault.Invalid, "the %s is not JSON", what).WithCode("malformed_json").Because(err)
}

func nothingTaken() {}

// readText reads at most most bytes. length is the announced length, or -1. A text larger than
// bodyAllowance waits for memory in the budget before it is read.
func (s *Server) readText(
	ctx context.Context, body io.Reader, length, most int64,
) (text []byte, give func(), err error) {
	tooLarge := fault.New(fault.TooLarge, "the body is larger than %d bytes", most)
	if length > most {
		return nil, nothingTaken, tooLarge
	}

	var begin []byte
	if length < 0 {
		begin, err = io.ReadAll(io.LimitReader(body, min(most, bodyAllowance)+1))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, nothingTaken, tooLarge.Because(err)
		}
		if err != nil || len(begin) <= bodyAllowance {
			return begin, nothingTaken, notArrived(err)
		}

		length = most
	}

	give = nothingTaken
	if length > bodyAllowance {
		if give, err = s.takeRoom(ctx, length*bodyCost); err != nil {
			return nil, nothingTaken, err
		}
	}

	buffer := bytes.NewBuffer(make([]byte, 0, length+bytes.MinRead))
	buffer.Write(begin)

	_, err = buffer.ReadFrom(body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || int64(buffer.Len()) > most {
		return nil, give, tooLarge.Because(err)
	}

	return buffer.Bytes(), give, notArrived(err)
}

func notArrived(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Invalid, "the body did not arrive").WithCode("incomplete_body").Because(err)
}

// takeRoom reserves n bytes of the body budget for the caller: for their user, or for their network
// if anonymous.
func (s *Server) takeRoom(ctx context.Context, n int64) (give func(), err error) {
	who := httpx.Network(httpx.From(ctx).Client)
	if user := caller(ctx).User; user != uuid.Nil {
		who = user.String()
	}

	waiting, cancel := context.WithTimeout(ctx, bodyWait)
	defer cancel()

	give, err = s.bodies.Take(waiting, who, n)
	if err != nil {
		busy := fault.New(fault.TooMany, "too many large requests are in flight; try again later").
			WithCode("too_busy").Because(err)
		busy.RetryAfter = bodyWait

		return nothingTaken, busy
	}

	return give, nil
}

// shape selects the values of a JSON text that the parser keeps. It skips members that the
// operation does not declare.
type shape struct {
	kind    string            // JSON type of the schema; "" keeps any value as text
	members map[string]*shape // members of an object; nil keeps all
	items   *shape            // items of an array
	most    int               // maximum number of items, for which one more is kept, to detect the excess
}

var anyValue = &shape{}

// shapes converts schemas to shapes.
type shapes struct {
	registry huma.Registry
	made     map[*huma.Schema]*shape // schemas may be recursive
}

func (m shapes) of(s *huma.Schema) *shape {
	for s.Ref != "" {
		s = m.registry.SchemaFromRef(s.Ref)
	}

	if made, ok := m.made[s]; ok {
		return made
	}

	made := &shape{kind: s.Type}
	m.made[s] = made

	switch {
	case s.Type == huma.TypeArray:
		made.items, made.most = m.of(s.Items), maxValues
		if s.MaxItems != nil {
			made.most = *s.MaxItems
		}
	case s.Type == huma.TypeObject && len(s.Properties) > 0:
		made.members = map[string]*shape{}
		for name, property := range s.Properties {
			made.members[name] = m.of(property)
		}
	}

	return made
}

// normalized adds the variants that a [normalizer] accepts: one object instead of a list, and
// column members in snake_case.
func (m shapes) normalized(s *huma.Schema) *shape {
	root := m.of(s)
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

// numbers marshals a number as its original text.
var numbers = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, n number) error {
	return e.WriteValue(jsontext.Value(n))
}))

var errManyValues = errors.New("too many values")

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
		return nil, fmt.Errorf("bytes after the value")
	}

	return v, nil
}

type parser struct {
	*jsontext.Decoder
	values int
}

func (p *parser) value(s *shape) (any, error) {
	if p.values++; p.values > maxValues {
		return nil, errManyValues
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
		if len(array) > s.most {
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
