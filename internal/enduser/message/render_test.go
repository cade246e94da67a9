package message

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
)

func TestRenderMail(t *testing.T) {
	t.Parallel()

	text := rules.MailText{Subject: "For {{ .Email }}",
		HTML: `<a href="{{ .ConfirmationURL }}">{{.Data.name}}</a>{{ .Data.none.x }}{{ .Data.list }}`,
		Text: "{{ .Token }} {{ .Nothing }}{{ .Data.age }}"}
	values := Values{Fields: map[string]string{"Email": "a@b.c\r\nBcc: x", "ConfirmationURL": `https://x/?a=1&b="`,
		"Token": "123456"}, Data: json.RawMessage(`{"name":"<b>{{ .Token }}</b>","age":7,"list":[1]}`)}

	m := RenderMail(text, values)
	if m.Subject != "For a@b.cBcc: x" || m.Text != "123456 7" ||
		m.HTML != `<a href="https://x/?a=1&amp;b=%22">&lt;b&gt;{{ .Token }}&lt;/b&gt;</a>` {
		t.Errorf("got %q, %q, %q", m.Subject, m.HTML, m.Text)
	}

	// A part that is absent comes from the other.
	if m := RenderMail(rules.MailText{Subject: "x", Text: "a < b"}, values); m.HTML != "<pre>a &lt; b</pre>\n" {
		t.Errorf("got the HTML %q", m.HTML)
	}
	if m := RenderMail(rules.MailText{Subject: "x", HTML: "<p>"}, values); m.Text != "https://x/?a=1&b=\"\n\n123456\n" {
		t.Errorf("got the text %q", m.Text)
	}
}

// TestRenderUnclearHTML: HTML that was stored when any was accepted gives way to the text if it
// does not show the place of a value.
func TestRenderUnclearHTML(t *testing.T) {
	t.Parallel()

	m := RenderMail(rules.MailText{Subject: "x", HTML: `<a href="{{ .Token }}>x</a>`, Text: "Code <{{ .Token }}>"},
		Values{Fields: map[string]string{"Token": "123456"}})
	if want := "<pre>Code &lt;123456&gt;</pre>\n"; m.HTML != want {
		t.Errorf("got %q, want %q", m.HTML, want)
	}
}

// TestRenderLongMail bounds the size of a mail, whose values can be long and stand often.
func TestRenderLongMail(t *testing.T) {
	t.Parallel()

	many := strings.Repeat("{{ .Email }}", 1000)
	m := RenderMail(rules.MailText{Subject: "x", Text: many, HTML: many},
		Values{Fields: map[string]string{"Email": strings.Repeat("<", 1000)}})
	if len(m.Text) > maxFilled || len(m.HTML) > maxFilled || len(m.HTML) < maxFilled/2 {
		t.Errorf("got %d and %d bytes, want at most %d", len(m.Text), len(m.HTML), maxFilled)
	}
}
