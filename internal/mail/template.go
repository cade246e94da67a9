package mail

import (
	"embed"
	"fmt"
	"html"
	"os"
	"strings"
)

// files has the templates: texts with the subject as first line. ${name} stands for a value. The
// value link, if used, is a paragraph of its own, and ${paragraphs} are all paragraphs of the mail.
//
//go:embed templates/*.txt
var files embed.FS

// Render renders a template as a mail to an address. Untrusted values of data, such as user names,
// may be any text: each stays within one line. paragraphs, untrusted as well, keep their lines, and
// stand where the template says. It fails if data lacks a value of the template.
func Render(name, to string, data map[string]string, paragraphs ...string) (Message, error) {
	template, err := files.ReadFile("templates/" + name + ".txt")
	if err != nil {
		return Message{}, fmt.Errorf("mail: %w", err)
	}

	var missing []string
	filled := os.Expand(string(template), func(key string) string {
		if key == "paragraphs" {
			return cleanParagraphs(paragraphs)
		}

		value, ok := data[key]
		if !ok {
			missing = append(missing, key)
		}

		return oneLine(value)
	})
	if len(missing) > 0 {
		return Message{}, fmt.Errorf("mail: template %s: no value of %s", name, strings.Join(missing, ", "))
	}

	subject, text, _ := strings.Cut(filled, "\n")
	text = strings.TrimSpace(text) + "\n"

	return Message{To: to, Subject: subject, Text: text, HTML: htmlOf(text, oneLine(data["link"]))}, nil
}

// cleanParagraphs joins paragraphs of untrusted text. None contains an empty line.
func cleanParagraphs(all []string) string {
	clean := make([]string, len(all))
	for i, paragraph := range all {
		var lines []string
		for line := range strings.Lines(paragraph) {
			if line = strings.TrimRight(oneLine(line), " "); line != "" {
				lines = append(lines, line)
			}
		}

		clean[i] = strings.Join(lines, "\n")
	}

	return strings.Join(clean, "\n\n")
}

// htmlOf returns text as HTML. Only link becomes a hyperlink.
func htmlOf(text, link string) string {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\"><body style=\"font-family: sans-serif; line-height: 1.5\">\n")

	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		shown := strings.ReplaceAll(html.EscapeString(paragraph), "\n", "<br>\n")
		if link != "" && paragraph == link {
			shown = `<a href="` + html.EscapeString(link) + `">` + shown + `</a>`
		}

		b.WriteString("<p>" + shown + "</p>\n")
	}

	b.WriteString("</body></html>\n")
	return b.String()
}
