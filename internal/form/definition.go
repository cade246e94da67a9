package form

import "slices"

// Field types, grouped by applicable rules. Checkbox and file have no rules.
var (
	textTypes   = []string{"text", "textarea", "email", "url", "phone"}
	numberTypes = []string{"number", "rating"}
	choiceTypes = []string{"radio", "select", "multiselect"}
	dateTypes   = []string{"date", "time", "datetime"}

	// Types lists all field types.
	Types = slices.Concat(textTypes, numberTypes, choiceTypes, dateTypes, []string{"checkbox", "file"})
)

// applicableTypes maps a member to the types it applies to. Other members apply to all types.
var applicableTypes = map[string][]string{
	"default_value": slices.Concat(textTypes, numberTypes, choiceTypes, dateTypes, []string{"checkbox"}),
	"options":       choiceTypes,
	"pattern":       textTypes,
	"min_length":    textTypes,
	"max_length":    textTypes,
	"min_value":     numberTypes,
	"max_value":     numberTypes,
	"date_format":   dateTypes,
	"start_date":    dateTypes,
	"end_date":      dateTypes,
}

// Definition holds the rules for a field's values; nil means no rule.
type Definition struct {
	Label        string  `json:"label"`
	Name         *string `json:"-"` // in answers, beside the UUID; the specified field lacks it
	Type         string  `json:"type"`
	Description  *string `json:"description" nullable:"true"`
	IsRequired   bool    `json:"isRequired"`
	DefaultValue *string `json:"defaultValue" nullable:"true"`
	Options      *string `json:"options" nullable:"true" doc:"JSON array of strings."`
	Pattern      *string `json:"pattern" nullable:"true" doc:"RE2 expression that must match the whole value."`
	MinLength    *int64  `json:"minLength" nullable:"true" doc:"Characters."`
	MaxLength    *int64  `json:"maxLength" nullable:"true" doc:"Characters."`
	MinValue     *int64  `json:"minValue" nullable:"true"`
	MaxValue     *int64  `json:"maxValue" nullable:"true"`
	DateFormat   *string `json:"dateFormat" nullable:"true" doc:"Input format of the value, such as DD.MM.YYYY or HH:mm."`
	StartDate    *string `json:"startDate" nullable:"true" doc:"Earliest value, ISO 8601."`
	EndDate      *string `json:"endDate" nullable:"true" doc:"Latest value, ISO 8601."`
}

// FieldInput is a request to create or change a field. An absent member keeps its value; null or
// empty text clears it.
type FieldInput struct {
	Label        string      `json:"label" doc:"1 to 100 characters."`
	Type         string      `json:"type" doc:"text, textarea, number, email, url, phone, date, time, datetime, checkbox, radio, select, multiselect, rating or file."`
	Name         Opt[string] `json:"name,omitzero" nullable:"true" doc:"Name of the field in answers and HTML forms, unique in the form: a letter, then up to 49 letters, digits, _ or -."`
	Description  Opt[string] `json:"description,omitzero" nullable:"true" doc:"Up to 500 characters."`
	IsRequired   Opt[bool]   `json:"is_required,omitzero"`
	DefaultValue Opt[string] `json:"default_value,omitzero" nullable:"true" doc:"A valid value of the field."`
	Options      Opt[string] `json:"options,omitzero" nullable:"true" doc:"JSON array of strings, or a comma-separated list. Required for, and only for, radio, select and multiselect."`
	Pattern      Opt[string] `json:"pattern,omitzero" nullable:"true" doc:"RE2 expression that must match the whole value. Text types only."`
	MinLength    Opt[int64]  `json:"min_length,omitzero" nullable:"true" doc:"Characters. Text types only."`
	MaxLength    Opt[int64]  `json:"max_length,omitzero" nullable:"true" doc:"Characters. Text types only."`
	MinValue     Opt[int64]  `json:"min_value,omitzero" nullable:"true" doc:"Number and rating only."`
	MaxValue     Opt[int64]  `json:"max_value,omitzero" nullable:"true" doc:"Number and rating only."`
	DateFormat   Opt[string] `json:"date_format,omitzero" nullable:"true" doc:"YYYY, MM and DD in a common order, HH:mm or HH:mm:ss, or both. Date, time and datetime only."`
	StartDate    Opt[string] `json:"start_date,omitzero" nullable:"true" doc:"Earliest value, in ISO 8601 or date_format. Date, time and datetime only."`
	EndDate      Opt[string] `json:"end_date,omitzero" nullable:"true" doc:"Latest value, in ISO 8601 or date_format. Date, time and datetime only."`
}

// apply returns the definition changed by in, and the result's problems.
//
// A value given in in must fit the type. A value left over from the previous type that does not fit
// is dropped, since the caller did not set it.
func (d Definition) apply(in FieldInput) (Definition, problems) {
	m := definitionChange{newType: in.Type, stale: map[string]func(){}}
	typeChanged := d.Type != in.Type
	d.Label, d.Type = in.Label, in.Type

	if in.IsRequired.Value != nil {
		d.IsRequired = *in.IsRequired.Value
	} else if in.IsRequired.Named {
		m.add("is_required", "invalid_value", "must be true or false")
	}

	applyMember(&m, "name", &d.Name, emptyToNull(in.Name))
	applyMember(&m, "description", &d.Description, emptyToNull(in.Description))
	applyMember(&m, "default_value", &d.DefaultValue, emptyToNull(in.DefaultValue))
	applyMember(&m, "options", &d.Options, emptyToNull(in.Options))
	applyMember(&m, "pattern", &d.Pattern, emptyToNull(in.Pattern))
	applyMember(&m, "min_length", &d.MinLength, in.MinLength)
	applyMember(&m, "max_length", &d.MaxLength, in.MaxLength)
	applyMember(&m, "min_value", &d.MinValue, in.MinValue)
	applyMember(&m, "max_value", &d.MaxValue, in.MaxValue)
	applyMember(&m, "date_format", &d.DateFormat, emptyToNull(in.DateFormat))
	applyMember(&m, "start_date", &d.StartDate, emptyToNull(in.StartDate))
	applyMember(&m, "end_date", &d.EndDate, emptyToNull(in.EndDate))

	invalid := d.check()
	if typeChanged && m.dropStale(invalid) {
		invalid = d.check()
	}

	return d, append(m.problems, invalid...)
}

// definitionChange is a definition change in progress.
type definitionChange struct {
	newType  string            // the type after the change
	stale    map[string]func() // clears a value that the request leaves unchanged
	problems                   // problems with request members
}

// applyMember applies one request member.
func applyMember[T any](m *definitionChange, name string, value **T, in Opt[T]) {
	if in.Named {
		*value = in.Value
	}

	if *value == nil {
		return
	}

	if !in.Named {
		m.stale[name] = func() { *value = nil }
	}

	types, ok := applicableTypes[name]
	if !ok || slices.Contains(types, m.newType) || !slices.Contains(Types, m.newType) {
		return
	}

	*value = nil

	if in.Named {
		m.add(name, "not_applicable", "does not apply to a field of type "+m.newType)
	}
}

// dropStale clears values left over from the previous type that are invalid on their own. It keeps
// contradictory limits, since one limit is from the request.
func (m *definitionChange) dropStale(invalid problems) (hasDropped bool) {
	for _, f := range invalid {
		if clear, ok := m.stale[f.Name]; ok && f.Code != outOfRange {
			clear()
			hasDropped = true
		}
	}

	return hasDropped
}

// emptyToNull turns empty text into null, since web forms send empty text for empty inputs.
func emptyToNull(in Opt[string]) Opt[string] {
	if in.Value != nil && *in.Value == "" {
		return Opt[string]{Named: true}
	}
	return in
}
