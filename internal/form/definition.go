package form

import "slices"

// Types of fields, grouped by applicable rules. Checkbox and file have no rules.
var (
	textTypes   = []string{"text", "textarea", "email", "url", "phone"}
	numberTypes = []string{"number", "rating"}
	choiceTypes = []string{"radio", "select", "multiselect"}
	dateTypes   = []string{"date", "time", "datetime"}

	// Types lists all field types.
	Types = slices.Concat(textTypes, numberTypes, choiceTypes, dateTypes, []string{"checkbox", "file"})
)

// applies maps a member to the types it applies to. Other members apply to all types.
var applies = map[string][]string{
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

// Definition holds the rules for the values of a field; nil means no rule.
type Definition struct {
	Label        string  `json:"label"`
	Type         string  `json:"type"`
	Description  *string `json:"description" nullable:"true"`
	IsRequired   bool    `json:"isRequired"`
	DefaultValue *string `json:"defaultValue" nullable:"true"`
	Options      *string `json:"options" nullable:"true" doc:"JSON array of strings."`
	Pattern      *string `json:"pattern" nullable:"true" doc:"RE2 expression that the whole value matches."`
	MinLength    *int64  `json:"minLength" nullable:"true" doc:"Characters."`
	MaxLength    *int64  `json:"maxLength" nullable:"true" doc:"Characters."`
	MinValue     *int64  `json:"minValue" nullable:"true"`
	MaxValue     *int64  `json:"maxValue" nullable:"true"`
	DateFormat   *string `json:"dateFormat" nullable:"true" doc:"How people write the value, such as DD.MM.YYYY or HH:mm."`
	StartDate    *string `json:"startDate" nullable:"true" doc:"Earliest value, ISO 8601."`
	EndDate      *string `json:"endDate" nullable:"true" doc:"Latest value, ISO 8601."`
}

// FieldInput is a request to create or change a field. An absent member keeps its value; null or
// empty text clears it.
type FieldInput struct {
	Label        string      `json:"label" doc:"1 to 100 characters."`
	Type         string      `json:"type" doc:"text, textarea, number, email, url, phone, date, time, datetime, checkbox, radio, select, multiselect, rating or file."`
	Description  Opt[string] `json:"description,omitzero" nullable:"true" doc:"Up to 500 characters."`
	IsRequired   Opt[bool]   `json:"is_required,omitzero"`
	DefaultValue Opt[string] `json:"default_value,omitzero" nullable:"true" doc:"A value that the field itself would take."`
	Options      Opt[string] `json:"options,omitzero" nullable:"true" doc:"JSON array of strings, or a comma-separated list. Required for, and only for, radio, select and multiselect."`
	Pattern      Opt[string] `json:"pattern,omitzero" nullable:"true" doc:"RE2 expression that the whole value has to match. Text types only."`
	MinLength    Opt[int64]  `json:"min_length,omitzero" nullable:"true" doc:"Characters. Text types only."`
	MaxLength    Opt[int64]  `json:"max_length,omitzero" nullable:"true" doc:"Characters. Text types only."`
	MinValue     Opt[int64]  `json:"min_value,omitzero" nullable:"true" doc:"Number and rating only."`
	MaxValue     Opt[int64]  `json:"max_value,omitzero" nullable:"true" doc:"Number and rating only."`
	DateFormat   Opt[string] `json:"date_format,omitzero" nullable:"true" doc:"YYYY, MM and DD in a usual order, HH:mm or HH:mm:ss, or both. Date, time and datetime only."`
	StartDate    Opt[string] `json:"start_date,omitzero" nullable:"true" doc:"Earliest value, in ISO 8601 or date_format. Date, time and datetime only."`
	EndDate      Opt[string] `json:"end_date,omitzero" nullable:"true" doc:"Latest value, in ISO 8601 or date_format. Date, time and datetime only."`
}

// apply returns the definition changed by in, and the problems of the result.
//
// A value given in in must fit the type. A value left over from the previous type that does not fit
// is dropped, since the caller did not set it.
func (d Definition) apply(in FieldInput) (Definition, problems) {
	m := merge{to: in.Type, left: map[string]func(){}}
	retyped := d.Type != in.Type
	d.Label, d.Type = in.Label, in.Type

	if in.IsRequired.Value != nil {
		d.IsRequired = *in.IsRequired.Value
	} else if in.IsRequired.Named {
		m.add("is_required", "invalid_value", "must be true or false")
	}

	member(&m, "description", &d.Description, orNull(in.Description))
	member(&m, "default_value", &d.DefaultValue, orNull(in.DefaultValue))
	member(&m, "options", &d.Options, orNull(in.Options))
	member(&m, "pattern", &d.Pattern, orNull(in.Pattern))
	member(&m, "min_length", &d.MinLength, in.MinLength)
	member(&m, "max_length", &d.MaxLength, in.MaxLength)
	member(&m, "min_value", &d.MinValue, in.MinValue)
	member(&m, "max_value", &d.MaxValue, in.MaxValue)
	member(&m, "date_format", &d.DateFormat, orNull(in.DateFormat))
	member(&m, "start_date", &d.StartDate, orNull(in.StartDate))
	member(&m, "end_date", &d.EndDate, orNull(in.EndDate))

	found := d.check()
	if retyped && m.drop(found) {
		found = d.check()
	}

	return d, append(m.problems, found...)
}

// merge is a change of a definition in progress.
type merge struct {
	to       string            // the type after the change
	left     map[string]func() // clears a value that the request leaves unchanged
	problems                   // of members in the request
}

// member applies one member of a request.
func member[T any](m *merge, name string, value **T, in Opt[T]) {
	if in.Named {
		*value = in.Value
	}

	if *value == nil {
		return
	}

	if !in.Named {
		m.left[name] = func() { *value = nil }
	}

	types, some := applies[name]
	if !some || slices.Contains(types, m.to) || !slices.Contains(Types, m.to) {
		return
	}

	*value = nil

	if in.Named {
		m.add(name, "not_applicable", "does not apply to a field of type "+m.to)
	}
}

// drop clears values left over from the previous type that are invalid on their own. It keeps
// contradictory limits, since one of the two is from the request.
func (m *merge) drop(found problems) (dropped bool) {
	for _, f := range found {
		if clear, ok := m.left[f.Name]; ok && f.Code != crossed {
			clear()
			dropped = true
		}
	}

	return dropped
}

// orNull turns empty text into null, since web forms send empty text for empty inputs.
func orNull(in Opt[string]) Opt[string] {
	if in.Value != nil && *in.Value == "" {
		return Opt[string]{Named: true}
	}
	return in
}
