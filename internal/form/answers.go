package form

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Answers maps a field's UUID, in canonical form, or its name to the answer as a JSON value.
type Answers map[string]jsontext.Value

const (
	maxAnswerLength  = 100_000 // characters
	maxChosenOptions = maxOptions
	maxProblems      = 100 // reported per request; more are cut off
	maxEchoedName    = 64  // bytes of an unknown name repeated in an error
)

// errPatternsTooComplex refuses answers to forms whose patterns were stored before there were
// limits.
var errPatternsTooComplex = errors.New("cannot be validated: the patterns of the form are too complex")

// fieldSet holds the fields in a form version, which validate responses.
type fieldSet struct {
	version  int
	frozenAt *time.Time // when the version was stored, which identifies it; nil: it is not stored
	honeypot *string
	notifies bool // the form has addresses to notify
	fields   []Field
}

// errNoAnswer reports an empty value: null, empty text or an empty list.
var errNoAnswer = errors.New("is required")

// takeHoneypot removes the honeypot from the answers and reports whether it was filled in.
func (d fieldSet) takeHoneypot(in Answers) bool {
	if d.honeypot == nil {
		return false
	}

	value, present := in[*d.honeypot]
	delete(in, *d.honeypot)

	return present && !slices.Contains([]string{"null", `""`, "false"}, string(value))
}

// validate validates answers and returns them in stored form. It fails with Unprocessable on every
// invalid answer, such as answers.<uuid>, and on unknown fields. files holds the fields with an
// uploaded file. It stops when ctx ends, since one response may take tens of milliseconds.
func (d fieldSet) validate(ctx context.Context, in Answers, files map[uuid.UUID]bool) (Answers, error) {
	in, names, p := d.byUUID(in)
	valid, budget := Answers{}, newPatternBudget()
	for _, f := range d.fields {
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		name := f.UUID.String()
		if f.Type == "file" {
			f.validateFile(&p, in[name], files[f.UUID])
			continue
		}

		value, err := f.normalize(in[name], budget)
		switch {
		case err == nil:
			valid[name] = value
		case err != errNoAnswer:
			p.add("answers."+name, "invalid_value", err.Error())
		case f.IsRequired:
			p.add("answers."+name, "required", "is required")
		}
	}

	p = append(p, d.unknownAnswers(in)...)
	for id := range files {
		if i := slices.IndexFunc(d.fields, func(f Field) bool { return f.UUID == id }); i < 0 ||
			d.fields[i].Type != "file" {
			p.add("answers."+id.String(), "unknown", "is not a file field of the form")
		}
	}

	p.rename(names)
	return valid, p[:min(len(p), maxProblems)].err()
}

func (f *Field) validateFile(p *problems, value jsontext.Value, hasFile bool) {
	name := "answers." + f.UUID.String()
	switch {
	case !isEmpty(value):
		p.add(name, "invalid_type", "must be a separate part of multipart/form-data")
	case !hasFile && f.IsRequired:
		p.add(name, "required", "is required")
	}
}

// unknownAnswers returns a problem for each answer that belongs to no field.
func (d fieldSet) unknownAnswers(in Answers) (p problems) {
	uuids := make(map[string]bool, len(d.fields))
	for _, f := range d.fields {
		uuids[f.UUID.String()] = true
	}

	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !uuids[name] && len(p) < maxProblems {
			if len(name) > maxEchoedName {
				name = strings.ToValidUTF8(name[:maxEchoedName], "") + "…"
			}
			p.add("answers."+name, "unknown", "is not a field of the form")
		}
	}

	return p
}

// isEmpty reports whether v is an empty answer.
func isEmpty(v jsontext.Value) bool {
	return slices.Contains([]string{"", "null", `""`, "[]"}, string(v))
}

// normalize validates a value and returns it in stored form: text, number, boolean or option list;
// dates in ISO 8601. It fails with errNoAnswer if the value is empty.
func (f *Field) normalize(v jsontext.Value, budget *patternBudget) (jsontext.Value, error) {
	if isEmpty(v) {
		return nil, errNoAnswer
	}

	text, err := f.decode(v)
	if err != nil {
		return nil, err
	}

	var none problems // the rules were validated when the field was saved
	if f.Pattern != nil && budget.weight < 0 {
		return nil, errPatternsTooComplex
	}

	r := f.compileRules(&none)
	if f.Pattern != nil && !budget.spend(r.pattern) {
		return nil, errPatternsTooComplex
	}

	value, err := f.validate(text, r, budget)
	if err != nil {
		return nil, err
	}

	switch {
	case f.Type == "multiselect":
		return jsontext.Value(value), nil
	case f.Type == "checkbox" && value == "false" && f.IsRequired: // as in a web form
		return nil, errNoAnswer
	case f.Type == "checkbox":
		return jsontext.Value(value), nil
	case slices.Contains(numberTypes, f.Type):
		return jsontext.Value(formatNumber(value)), nil
	case f.IsRequired && strings.TrimSpace(value) == "":
		return nil, errNoAnswer
	}

	return json.Marshal(value)
}

// decode converts a value to text, in the same form as a default value.
func (f *Field) decode(v jsontext.Value) (string, error) {
	switch kind := v.Kind(); {
	case f.Type == "multiselect" && kind == '[':
		var options []string
		if err := json.Unmarshal(v, &options); err != nil || len(options) > maxChosenOptions {
			return "", errors.New("must be a list of options")
		}

		return formatList(options)
	case f.Type == "multiselect":
		return "", errors.New("must be a list of options")
	case kind == '"':
		var text string
		if err := json.Unmarshal(v, &text); err != nil || strings.ContainsRune(text, 0) {
			return "", errors.New("must be text without NUL")
		}
		if utf8.RuneCountInString(text) > maxAnswerLength {
			return "", errors.New("must be at most " + plural(maxAnswerLength, "character"))
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

// formatNumber formats a number as JSON requires, without leading zeros.
func formatNumber(text string) string {
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

// validatePartial validates a partial response's answers and returns them by UUID: each must belong
// to a field and have the field's type. Completion checks the fields' rules.
func (d fieldSet) validatePartial(in Answers) (Answers, error) {
	in, names, p := d.byUUID(in)
	p = append(p, d.unknownAnswers(in)...)
	for _, f := range d.fields {
		v := in[f.UUID.String()]
		if isEmpty(v) {
			continue
		}

		if f.Type == "file" {
			f.validateFile(&p, v, false)
		} else if _, err := f.decode(v); err != nil {
			p.add("answers."+f.UUID.String(), "invalid_type", err.Error())
		}
	}

	p.rename(names)
	return in, p[:min(len(p), maxProblems)].err()
}
