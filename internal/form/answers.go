package form

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Answers maps the UUID of a field, in canonical form, to its answer as a JSON value.
type Answers map[string]jsontext.Value

const (
	maxAnswer   = 100_000 // characters
	maxChosen   = maxOptions
	maxProblems = 100 // reported per request; more are cut off
	clipped     = 64  // bytes of an unknown name repeated in an error
)

// errTooHeavy refuses answers to forms whose patterns were stored before there were limits.
var errTooHeavy = errors.New("can't be checked: the patterns of the form are too complex")

// definition holds the fields of a version of a form, which validate responses.
type definition struct {
	version  int
	honeypot *string
	fields   []Field
}

// errUnanswered reports an empty value: null, empty text or an empty list.
var errUnanswered = errors.New("is required")

// trapped removes the honeypot from the answers and reports whether it was filled in.
func (d definition) trapped(in Answers) bool {
	if d.honeypot == nil {
		return false
	}

	bait, there := in[*d.honeypot]
	delete(in, *d.honeypot)

	return there && !slices.Contains([]string{"null", `""`, "false"}, string(bait))
}

// judge validates answers and returns them in stored form. It fails with Unprocessable on every
// invalid answer, such as answers.<uuid>, and on unknown fields. files holds the fields with an
// uploaded file. It stops when ctx ends, since one response may take tens of milliseconds.
func (d definition) judge(ctx context.Context, in Answers, files map[uuid.UUID]bool) (Answers, error) {
	var p problems
	kept, left := Answers{}, newEffort()
	for _, f := range d.fields {
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		name := f.UUID.String()
		if f.Type == "file" {
			f.judgeFile(&p, in[name], files[f.UUID])
			continue
		}

		value, err := f.answer(in[name], left)
		switch {
		case err == nil:
			kept[name] = value
		case err != errUnanswered:
			p.add("answers."+name, "invalid_value", err.Error())
		case f.IsRequired:
			p.add("answers."+name, "required", "is required")
		}
	}

	p = append(p, d.unknown(in)...)
	for id := range files {
		if i := slices.IndexFunc(d.fields, func(f Field) bool { return f.UUID == id }); i < 0 ||
			d.fields[i].Type != "file" {
			p.add("answers."+id.String(), "unknown", "is no field for a file")
		}
	}

	return kept, p[:min(len(p), maxProblems)].err()
}

func (f *Field) judgeFile(p *problems, value jsontext.Value, came bool) {
	name := "answers." + f.UUID.String()
	switch {
	case !blank(value):
		p.add(name, "invalid_type", "must be a part of its own in multipart/form-data")
	case !came && f.IsRequired:
		p.add(name, "required", "is required")
	}
}

// unknown returns a problem for each answer that belongs to no field.
func (d definition) unknown(in Answers) (p problems) {
	known := make(map[string]bool, len(d.fields))
	for _, f := range d.fields {
		known[f.UUID.String()] = true
	}

	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !known[name] && len(p) < maxProblems {
			if len(name) > clipped {
				name = strings.ToValidUTF8(name[:clipped], "") + "…"
			}
			p.add("answers."+name, "unknown", "is no field of the form")
		}
	}

	return p
}

// blank reports whether v is an empty answer.
func blank(v jsontext.Value) bool {
	return slices.Contains([]string{"", "null", `""`, "[]"}, string(v))
}

// answer validates a value and returns it in stored form: text, number, boolean or list of options;
// dates in ISO 8601. It fails with errUnanswered if the value is empty.
func (f *Field) answer(v jsontext.Value, left *effort) (jsontext.Value, error) {
	if blank(v) {
		return nil, errUnanswered
	}

	text, err := f.read(v)
	if err != nil {
		return nil, err
	}

	var none problems // the rules were validated when the field was saved
	if f.Pattern != nil && left.weight < 0 {
		return nil, errTooHeavy
	}

	r := f.prepare(&none)
	if f.Pattern != nil && !left.load(r.pattern) {
		return nil, errTooHeavy
	}

	kept, err := f.judge(text, r, left)
	if err != nil {
		return nil, err
	}

	switch {
	case f.Type == "multiselect":
		return jsontext.Value(kept), nil
	case f.Type == "checkbox" && kept == "false" && f.IsRequired: // as in a web form: a required checkbox must be checked
		return nil, errUnanswered
	case f.Type == "checkbox":
		return jsontext.Value(kept), nil
	case slices.Contains(numberTypes, f.Type):
		return jsontext.Value(decimal(kept)), nil
	case f.IsRequired && strings.TrimSpace(kept) == "":
		return nil, errUnanswered
	}

	return json.Marshal(kept)
}

// read decodes a value to text, in the form of a default value.
func (f *Field) read(v jsontext.Value) (string, error) {
	switch kind := v.Kind(); {
	case f.Type == "multiselect" && kind == '[':
		var chosen []string
		if err := json.Unmarshal(v, &chosen); err != nil || len(chosen) > maxChosen {
			return "", errors.New("must be a list of options")
		}

		return formatList(chosen)
	case f.Type == "multiselect":
		return "", errors.New("must be a list of options")
	case kind == '"':
		var text string
		if err := json.Unmarshal(v, &text); err != nil || strings.ContainsRune(text, 0) {
			return "", errors.New("must be text without NUL")
		}
		if utf8.RuneCountInString(text) > maxAnswer {
			return "", errors.New("must be at most " + count(maxAnswer, "character"))
		}

		return text, nil
	case kind == '0' && slices.Contains(numberTypes, f.Type) && numberPattern.Match(v),
		(kind == 't' || kind == 'f') && f.Type == "checkbox":
		return string(v), nil
	case slices.Contains(numberTypes, f.Type):
		return "", errors.New("must be a number")
	case f.Type == "checkbox":
		return "", errors.New("must be true or false")
	}

	return "", errors.New("must be text")
}

// decimal formats a number as JSON requires, without leading zeros.
func decimal(text string) string {
	digits, negative := strings.CutPrefix(text, "-")
	digits = strings.TrimLeft(digits, "0")
	if digits == "" || digits[0] == '.' {
		digits = "0" + digits
	}

	if negative {
		return "-" + digits
	}

	return digits
}

// keep validates the answers of a partial response: each must belong to a field and have its type.
// The rules of the fields are checked on completion.
func (d definition) keep(in Answers) error {
	p := d.unknown(in)
	for _, f := range d.fields {
		v := in[f.UUID.String()]
		if blank(v) {
			continue
		}

		if f.Type == "file" {
			f.judgeFile(&p, v, false)
		} else if _, err := f.read(v); err != nil {
			p.add("answers."+f.UUID.String(), "invalid_type", err.Error())
		}
	}

	return p[:min(len(p), maxProblems)].err()
}
