package web

import (
	"regexp"
	"strings"
	"testing"
)

// html returns a page as HTML.
func html(t *testing.T, p page) string {
	t.Helper()

	var b strings.Builder
	if err := p.write(&b, p.Theme.style()); err != nil {
		t.Fatal(err)
	}

	return b.String()
}

// TestHostileAddresses: no address of a page runs a script or leads to another protocol.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()

	view := func(address string) string {
		return html(t, page{Links: []link{{URL: address}}, Step: link{URL: address},
			Form: &form{Action: address}, Theme: theme{Logo: address}})
	}

	for _, address := range []string{"javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)",
		"\u00a0javascript:alert(1)", "java\nscript:alert(1)", "\x01javascript:alert(1)",
		"javascript://%0aalert(1)", "data:text/html,<script>", "vbscript:x", "file:///etc/passwd"} {
		if got, want := view(address), view("javascript:"); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", address, got, want)
		}
	}

	for _, address := range []string{"/f/aB3_-x/logo", "https://x.example/a?b#c", "mailto:a@x.example"} {
		if got, quoted := view(address), `="`+address+`"`; strings.Count(got, quoted) != 4 {
			t.Errorf("%q: got\n%s\nwant the address four times", address, got)
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

	return page{Title: s, Text: []string{s}, Problem: s, Form: f, Links: []link{{s, s, s}}, Step: link{s, s, s},
		Aside: s,
		Theme: theme{Logo: s, Color: s}}
}

// structure returns the tags of a page with the names of their attributes.
func structure(t *testing.T, s string) string {
	t.Helper()

	content := html(t, everyInput(s))
	content = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(content, `""`)
	return regexp.MustCompile(`>[^<]*<`).ReplaceAllString(content, "><")
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()

	want := structure(t, "x")
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
		if got := structure(t, s); got != want {
			t.Errorf("%q changes the structure:\n%s\nwant:\n%s", s, got, want)
		}
	}
}

// TestLeadingNewline keeps the first newline of a value, which browsers skip after the tag.
func TestLeadingNewline(t *testing.T) {
	t.Parallel()

	got := html(t, page{Form: &form{Inputs: []input{{Name: "a", Type: "textarea", Value: "\n\nb"}}}})
	if want := ">\n\n\nb</textarea>"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

func TestStyle(t *testing.T) {
	t.Parallel()

	for color, want := range map[string]string{
		"#102030":          ":root{--accent:#102030;--on-accent:#fff}",
		"#FFEE00":          ":root{--accent:#ffee00;--on-accent:#000}",
		"#000000</style>x": ":root{--accent:#000000;--on-accent:#fff}",
		"red":              "",
		"":                 "",
	} {
		look := theme{Color: color}
		if got := string(look.style()); got != want {
			t.Errorf("%q: got %q, want %q", color, got, want)
		}

		if got := strings.Contains(html(t, page{Theme: look}), "<style>"+want+"</style>"); got != (want != "") {
			t.Errorf("%q: got the style element %t, want %t", color, got, want != "")
		}
	}
}
