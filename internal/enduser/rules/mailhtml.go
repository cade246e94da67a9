package rules

import (
	"errors"
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
)

// bracket matches each < of HTML, with the characters that give it a meaning: as the delimiter of a
// comment that Outlook reads as HTML, such as <!--[if mso]> and <![endif]-->, or as the beginning
// of a tag, a comment or the document type. Alone it is text.
var bracket = regexp.MustCompile(`<!(?:--)?\[if [^\]<>]*\](?:--)?>(?:<!-- ?(?:--)?>)?|(?:<!-- ?)?<!\[endif\](?:--)?>` +
	`|<(?:/?[a-zA-Z]|!--|!(?i:doctype))?`)

// FillHTML replaces the variables of HTML. html/template escapes each value by its place: in an
// element, an attribute, a URL, a style. It fails with a *template.Error if the HTML does not show
// the place.
//
// The text is a stranger's, and html/template would execute its loops and let templates call
// themselves. So the actions are written here, one for each variable, between delimiters that no
// text has. All other braces are text. html/template looks at the whole rest of a text for each <
// that is text, so these are escaped before.
func FillHTML(text string, value func(name string) string) (string, error) {
	source := strings.ReplaceAll(text, "\x00", "")
	source = variable.ReplaceAllString(source, "\x00{value \"${1}${2}\"}\x00")
	source = bracket.ReplaceAllStringFunc(source, func(match string) string {
		switch {
		case match == "<":
			return "&lt;"
		case strings.HasSuffix(match, ">"):
			return "\x00{comment " + strconv.Quote(match) + "}\x00"
		}
		return match
	})

	t, err := template.New("html").Delims("\x00{", "}\x00").Funcs(template.FuncMap{
		"value":   func(name string) any { return safeAddress(name, value(name)) },
		"comment": func(delimiter string) template.HTML { return template.HTML(delimiter) },
	}).Parse(source)
	if err != nil {
		return "", err
	}

	var b strings.Builder
	err = t.Execute(&b, nil)

	return b.String(), err
}

// safeAddress returns the value of a variable for html/template, which takes addresses of HTTP and
// e-mail in a link. RedirectTo can have the scheme of an app: the project allows the address.
func safeAddress(name, value string) any {
	isHTTP := strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "http://")
	if name == "RedirectTo" && !isHTTP {
		return template.URL(value)
	}

	return value
}

// checkHTML fails if html/template can't tell the place of a variable.
func checkHTML(text string) error {
	_, err := FillHTML(text, func(string) string { return "" })
	if err == nil {
		return nil
	}

	line := 1
	if e, ok := errors.AsType[*template.Error](err); ok {
		line = e.Line
	}

	return fmt.Errorf("needs html whose tags, attributes, styles and comments are closed, with values of attributes "+
		"in quotes; see line %d", line)
}
