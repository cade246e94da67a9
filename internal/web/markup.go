package web

import (
	"bytes"
	"html"
	"net/url"
	"slices"
	"strings"
)

// markup is HTML. An untyped constant converts to it implicitly. The compiler rejects any other
// string, which text, attribute or address must escape.
type markup string

// text escapes a string for an element's content, or for an attribute's value between quotes. It
// does not fit script and style elements, nor attributes that hold a URL, a style or a script.
func text(s string) markup { return markup(html.EscapeString(s)) }

// attribute returns an attribute, with a space before it, or "" if the value is empty.
func attribute(name markup, value string) markup {
	if value == "" {
		return ""
	}
	return " " + name + `="` + text(value) + `"`
}

// address escapes a URL for an attribute's value between quotes. It returns "#" unless the URL is
// an absolute one of HTTP or e-mail, or a path of this server.
func address(s string) markup {
	u, err := url.Parse(s)
	if err != nil {
		return "#"
	}

	ownPath := strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "//") // "//" starts a host
	if !ownPath && !slices.Contains([]string{"http", "https", "mailto"}, u.Scheme) {
		return "#"
	}

	return text(u.String())
}

// when returns markup if a condition holds, or else "".
func when(condition bool, m markup) markup {
	if !condition {
		return ""
	}
	return m
}

// writer collects the markup of a page.
type writer struct{ buffer bytes.Buffer }

func (w *writer) put(parts ...markup) {
	for _, m := range parts {
		w.buffer.WriteString(string(m))
	}
}
