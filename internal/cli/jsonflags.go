package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/socle-dev/socle/internal/config"
)

// helpWidth is the width of texts in help.
const helpWidth = 80

// jsonForms describes the flags that take JSON, by their schemas; "" without such a flag.
func (r *remote) jsonForms() string {
	var b strings.Builder
	for _, name := range r.members {
		v := r.flags[name]
		if v == nil || v.kind != kindJSON || v.schema.Type == nil {
			continue
		}

		line := "--" + r.flagName(name) + " takes JSON: " + r.document.form(v.schema)
		if required := itemOf(r.document, v.schema).Required; len(required) > 0 {
			line += "; required: " + strings.Join(required, ", ")
		}

		b.WriteString("\n")
		for line := range strings.Lines(text.WrapSoft(line, helpWidth)) {
			b.WriteString("\n" + strings.TrimSpace(line))
		}
	}

	return b.String()
}

// itemOf returns the schema of a list's items, or the schema of anything else.
func itemOf(d *description, s schema) schema {
	if s.Items != nil {
		return d.resolve(*s.Items)
	}
	return s
}

// form returns the form of a schema's values: JSON with the names of types in place of values.
func (d *description) form(s schema) string {
	s = d.resolve(s)

	var values schema
	_ = json.Unmarshal(s.AdditionalProperties, &values) // true allows any values

	switch {
	case len(s.Enum) > 0:
		var texts []string
		for _, v := range s.Enum {
			literal, _ := json.Marshal(v) // decoded from JSON
			texts = append(texts, string(literal))
		}
		return strings.Join(texts, "|")
	case s.is("array") && s.Items != nil:
		return "[" + d.form(*s.Items) + ", …]"
	case len(s.Properties) > 0:
		var members []string
		for _, name := range slices.Concat(s.Required, s.optional()) {
			members = append(members, fmt.Sprintf("%q: %s", name, d.form(s.Properties[name])))
		}
		return "{" + strings.Join(members, ", ") + "}"
	case s.is("object"):
		return `{"NAME": ` + d.form(values) + ", …}"
	case s.is("string"):
		return "TEXT"
	case s.is("integer"), s.is("number"):
		return "NUMBER"
	case s.is("boolean"):
		return "true|false"
	}

	return "VALUE"
}

// optional returns the sorted names of properties that are not required.
func (s schema) optional() []string {
	var names []string
	for name := range s.Properties {
		if !slices.Contains(s.Required, name) {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return names
}

// exampleArgs returns the arguments and flags of the operation's example; nil without one.
func (r *remote) exampleArgs() []string {
	if r.media != "application/json" {
		return nil
	}

	v, err := decode(r.RequestBody.Content[r.media].Example)
	body, ok := v.(record)
	if err != nil || !ok {
		return nil
	}

	var args []string
	for _, name := range r.args {
		example, ok := r.parameter(name).Example.(string)
		if !ok || r.parameter(name).Schema.Format == "uuid" {
			example = argument(name)
		}

		args = append(args, example)
	}

	for _, m := range body {
		v := r.flags[m.name]
		if v == nil { // a password
			continue
		}

		flag := "--" + r.flagName(m.name)
		items, several := m.value.([]any)
		switch {
		case v.kind == kindBool && m.value == true:
			args = append(args, flag)
		case v.kind == kindBool:
			args = append(args, fmt.Sprintf("%s=%v", flag, m.value))
		case v.kind == kindList && several:
			for _, item := range items {
				args = append(args, flag, fmt.Sprint(item))
			}
		default:
			args = append(args, flag, exampleText(m))
		}
	}

	return args
}

// exampleText returns a member of an example as a flag takes it.
func exampleText(m member) string {
	switch v := m.value.(type) {
	case string:
		return v
	case json.Number:
		if isRole(m.name) {
			return roleName(v.String())
		}
		return v.String()
	}

	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(m.value) // decoded from JSON

	return strings.TrimSpace(b.String())
}

// example returns the operation's example as a command line for a shell; "" without one.
func (r *remote) example(path string) string {
	args := r.exampleArgs()
	if args == nil {
		return ""
	}

	line := "  " + path
	for _, a := range args {
		line += " " + config.ShellWord(a)
	}

	return line
}
