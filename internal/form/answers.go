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

// Answers are what someone answers: JSON values by the field's UUID in its usual spelling.
type Answers map[string]jsontext.Value

const (
	maxAnswer   = 100_000 // characters
	maxChosen   = maxOptions
	maxProblems = 100 // that an answer of ours reports; the rest is no less at fault
	clipped     = 64  // bytes of a name that is sent back
)

// errTooHeavy refuses answers to a form whose patterns were kept before there were bounds.
var errTooHeavy = errors.New("can't be checked: the patterns of the form are too complex")

// definition is a form's fields at a moment, by which responses are judged.
type definition struct {
	version  int
	honeypot *string
	fields   []Field
}

// errUnanswered says that a value is none: null, empty text, an empty list.
var errUnanswered = errors.New("is required")

// trapped takes the honeypot's value out of the answers, and reports whether there was something in it.
func (d definition) trapped(in Answers) bool {
	if d.honeypot == nil {
		return false
	}

	bait, there := in[*d.honeypot]
	delete(in, *d.honeypot)

	return there && !slices.Contains([]string{"null", `""`, "false"}, string(bait))
}

// judge returns the answers as they are kept. It fails with Unprocessable on every one that breaks a rule of
// its field, such as answers.<uuid>, and on what is no field's. files are the fields that a file came for.
// It ends when ctx does: the answers of one response may take tens of milliseconds.
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

// unknown returns the answers to what is no field.
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

// blank reports whether a value answers nothing.
func blank(v jsontext.Value) bool {
	return slices.Contains([]string{"", "null", `""`, "[]"}, string(v))
}

// answer judges a value, and returns it as it is kept: text as it came, numbers, true or false, and lists of options; dates in ISO 8601.
// It fails with errUnanswered if there is none.
func (f *Field) answer(v jsontext.Value, left *effort) (jsontext.Value, error) {
	if blank(v) {
		return nil, errUnanswered
	}

	text, err := f.read(v)
	if err != nil {
		return nil, err
	}

	var none problems // the rules themselves were judged when the field was changed
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
	case f.Type == "checkbox" && kept == "false" && f.IsRequired: // as in a web form: consent is given or it is not
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

// read returns a value as text, in the form in which a default is written.
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

// decimal writes a number as JSON has it, without zeros before it.
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

// keep checks the answers of a partial response, of which no rule is asked yet: they must be answers to fields, in a form that can be kept.
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
