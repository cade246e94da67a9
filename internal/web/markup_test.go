package web

import (
	"regexp"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	t.Parallel()

	got, want := text(`<a href="x" title='&amp;'>`), markup("&lt;a href=&#34;x&#34; title=&#39;&amp;amp;&#39;&gt;")
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]markup{
		"/":                          "/",
		"/f/aB3_-x/logo":             "/f/aB3_-x/logo",
		"/assets/page.css?v=1&w=2":   "/assets/page.css?v=1&amp;w=2",
		"/a:b":                       "/a:b",
		`/x" onclick="y`:             "/x%22%20onclick=%22y",
		`/\other.example`:            "/%5Cother.example",
		"http://x.example:80/a?b#c":  "http://x.example:80/a?b#c",
		"HTTPS://x.example":          "https://x.example",
		"mailto:a@x.example":         "mailto:a@x.example",
		"":                           "#",
		"relative":                   "#",
		"//other.example":            "#",
		"///other.example":           "#",
		"javascript:alert(1)":        "#",
		"JavaScript:alert(1)":        "#",
		" javascript:alert(1)":       "#",
		"\u00a0javascript:alert(1)":  "#",
		"java\nscript:alert(1)":      "#",
		"\x01javascript:alert(1)":    "#",
		"javascript&colon;alert(1)":  "#",
		"javascript://%0aalert(1)":   "#",
		"data:text/html,<script>":    "#",
		"vbscript:x":                 "#",
		"file:///etc/passwd":         "#",
		"/%zz":                       "#",
		"http://x.example/\nb\x00":   "#",
		"https://x.example/'\"<>&+b": "https://x.example/%27%22%3C%3E&amp;+b",
	} {
		if got := address(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// everyInput returns a page with all that a page can have, all its texts being s.
func everyInput(s string) page {
	f := &form{Action: s, Button: s, Honeypot: s, Hidden: []hidden{{s, s}}, Files: true}
	for _, kind := range []string{"text", "textarea", "select", "radio", "checkboxes", "checkbox", "file", s} {
		f.Inputs = append(f.Inputs, input{Name: s, Label: s, Type: kind, Help: s, Error: s, Value: s,
			Options: []option{{s, true}}, Autocomplete: s, InputMode: s, Min: s, Max: s, Step: s, MinLength: s,
			MaxLength: s, Required: true, Optional: true, Focus: true})
	}

	return page{Title: s, Text: []string{s}, Problem: s, Form: f, Links: []link{{s, s, s}}, Aside: s,
		Theme: theme{Logo: s, Color: s}}
}

// structure returns the tags of a page with the names of their attributes.
func structure(s string) string {
	var p writer
	shown := everyInput(s)
	p.page(shown, shown.Theme.style())

	content := p.buffer.String()
	content = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(content, `""`)
	return regexp.MustCompile(`>[^<]*<`).ReplaceAllString(content, "><")
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()

	want := structure("x")
	for _, tag := range []string{"<title>", "<img ", "<textarea ", "<select ", "<fieldset ", "<legend>", "<a "} {
		if !strings.Contains(want, tag) {
			t.Errorf("no %s in %s", tag, want)
		}
	}

	for _, s := range []string{
		"<script>alert(1)</script>", "</title><script>", "</textarea><script>", "</style><script>", `"><script>`,
		`" onfocus="alert(1)`, "' onfocus='alert(1)", "javascript:alert(1)", "<!--", "-->", "\n\r\n", "&#34;>&lt;b",
		"\x00\xff",
	} {
		if got := structure(s); got != want {
			t.Errorf("%q changes the structure:\n%s\nwant:\n%s", s, got, want)
		}
	}
}

// TestLeadingNewline keeps the first newline of a value, which browsers skip after the tag.
func TestLeadingNewline(t *testing.T) {
	t.Parallel()

	var w writer
	w.input(input{Name: "a", Type: "textarea", Value: "\n\nb"})
	if got, want := w.buffer.String(), ">\n\n\nb</textarea>"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

func TestStyle(t *testing.T) {
	t.Parallel()

	for color, want := range map[string]markup{
		"#102030":          ":root{--accent:#102030;--on-accent:#fff}",
		"#FFEE00":          ":root{--accent:#ffee00;--on-accent:#000}",
		"#000000</style>x": ":root{--accent:#000000;--on-accent:#fff}",
		"red":              "",
		"":                 "",
	} {
		if got := (theme{Color: color}).style(); got != want {
			t.Errorf("%q: got %q, want %q", color, got, want)
		}

		var w writer
		w.page(page{}, want)
		if got := strings.Contains(w.buffer.String(), "<style>"+string(want)+"</style>"); got != (want != "") {
			t.Errorf("%q: got the style element %t, want %t", color, got, want != "")
		}
	}
}
