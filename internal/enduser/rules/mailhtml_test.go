package rules

import (
	"strings"
	"testing"
)

// TestMailHTML fills variables in each place of HTML with values of a hostile user.
func TestMailHTML(t *testing.T) {
	t.Parallel()

	values := map[string]string{"SiteURL": "https://app.example", "RedirectTo": "https://app.example/a?b=c&d=e",
		"ConfirmationURL": "https://api.example/verify?token=a&type=b", "Email": "a+b@example.com",
		"Data.name": "<b>x</b>", "Data.page": "javascript:alert(1)", "Data.color": "red;position:fixed",
		"Data.attribute": "x onclick=alert(1)", "Data.end": "--><script>", "Data.action": "{{ .Token }}"}
	value := func(name string) string { return values[name] }

	for in, want := range map[string]string{
		"<p>{{ .Data.name }}</p>":                   "<p>&lt;b&gt;x&lt;/b&gt;</p>",
		"{{ .Data.action }}":                        "{{ .Token }}",
		"<a href='{{ .Data.page }}'>x</a>":          "<a href='#ZgotmplZ'>x</a>",
		"<a href={{ .Data.attribute }}>x</a>":       "<a href=x%20onclick&#61;alert%281%29>x</a>",
		`<p style="color: {{ .Data.color }}">x</p>`: `<p style="color: ZgotmplZ">x</p>`,
		`<a href="{{ .ConfirmationURL }}">x</a>`:    `<a href="https://api.example/verify?token=a&amp;type=b">x</a>`,
		`<a href="{{ .SiteURL }}/ok?e={{ .Email }}&amp;next={{ .RedirectTo }}">x</a>`: `<a href="https://app.example/ok?e=` +
			`a%2bb%40example.com&amp;next=https%3a%2f%2fapp.example%2fa%3fb%3dc%26d%3de">x</a>`,
		// Comments that Outlook reads as HTML stay, with the values in them; others go.
		`<!--[if mso]><v:rect href="{{ .Data.page }}">{{ .Data.end }}</v:rect><![endif]-->`: `<!--[if mso]>` +
			`<v:rect href="#ZgotmplZ">--&gt;&lt;script&gt;</v:rect><![endif]-->`,
		"<!--[if !mso]><!-->x<!--<![endif]-->": "<!--[if !mso]><!-->x<!--<![endif]-->",
		"1 < 2 << 3 <! </ <p>x</p>":            "1 &lt; 2 &lt;&lt; 3 &lt;! &lt;/ <p>x</p>",
		"a<!-- {{ .Data.end }} -->b":           "ab",
	} {
		got, err := FillHTML(in, value)
		if err != nil || got != want {
			t.Errorf("%s: got\n%s, %v\nwant\n%s", in, got, err, want)
		}
	}

	// The project allows the address of an app.
	values["RedirectTo"] = "myapp://callback"
	if got, err := FillHTML(`<a href="{{ .RedirectTo }}">x</a>`, value); err != nil ||
		got != `<a href="myapp://callback">x</a>` {
		t.Errorf("the address of an app: got %s, %v", got, err)
	}
}

// TestMailHTMLRunsNothing: actions of a text are text, whatever html/template would make of them.
func TestMailHTMLRunsNothing(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"{{ range 1000000000 }}x{{ end }}",
		`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`,
		`{{ printf "%1000000000d" 1 }}`,
		"{{ if",
		"{{",
		"{{- .Token -}}",
		"\x00{ range 1000000000 }\x00x\x00{ end }\x00",
	} {
		got, err := FillHTML(text, func(string) string { return "value" })
		if want := strings.ReplaceAll(text, "\x00", ""); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

// TestMailHTMLPlace: a text that does not show the place of a value is refused.
func TestMailHTMLPlace(t *testing.T) {
	t.Parallel()

	for _, html := range []string{"x\n<a href=\"{{ .Token }}>x</a>", "x\n<p {{ .Token }}", "\n<style>p {",
		"\n<a href=x?{{ .Token }}=>x</a>"} {
		m := MailText{Subject: "x", HTML: html, Text: "Code <{{ .Token }}>"}
		if err := m.check(); err == nil || !strings.Contains(err.Error(), "see line ") {
			t.Errorf("%q: got the error %v", html, err)
		}
	}

	for kind, text := range defaultMails {
		if err := text.check(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
