package message

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/mail"
)

// Values are the variables' values in a text.
type Values struct {
	Fields map[string]string // by variable name
	Data   json.RawMessage   // object with the members for Data
}

// maxFilled bounds the bytes of all values in a text. Values can be long and stand often.
const maxFilled = 100_000

// lookUp returns a function that returns the value of a variable, or "" once the values, escaped
// for HTML, have maxFilled bytes.
func (v Values) lookUp() func(name string) string {
	var data any
	_ = json.Unmarshal(v.Data, &data) // an object

	budget := maxFilled
	return func(name string) string {
		value := v.Fields[name]
		if first, path, _ := strings.Cut(name, "."); first == "Data" {
			value = member(data, strings.Split(path, "."))
		}

		value = oneLine(value)
		if budget -= len(html.EscapeString(value)); budget < 0 {
			return ""
		}

		return value
	}
}

// RenderMail returns a text's mail, without a recipient. The HTML part is the text if there is
// none, or if it was stored when any was accepted and does not show the place of a value.
func RenderMail(text rules.MailText, v Values) mail.Message {
	m := mail.Message{Subject: oneLine(rules.Fill(text.Subject, v.lookUp())), Text: rules.Fill(text.Text, v.lookUp())}
	if m.Text == "" {
		m.Text = fmt.Sprintf("%s\n\n%s\n", v.Fields["ConfirmationURL"], v.Fields["Token"])
	}

	var err error
	if m.HTML, err = rules.FillHTML(text.HTML, v.lookUp()); err != nil || m.HTML == "" {
		m.HTML = "<pre>" + html.EscapeString(m.Text) + "</pre>\n"
	}

	return m
}

// member returns the text in a decoded JSON object's member.
func member(value any, path []string) string {
	for _, name := range path {
		members, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = members[name]
	}

	switch v := value.(type) {
	case nil, map[string]any, []any:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// oneLine removes line breaks and other control characters, which a value has no use for.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
