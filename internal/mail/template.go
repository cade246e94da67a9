package mail

import (
	"embed"
	"fmt"
	htmltemplate "html/template"
	"strings"
	"text/template"
)

// files has the templates: texts with the subject as first line. The value link, if used, is a
// paragraph by itself, and the value paragraphs holds all untrusted paragraphs.
//
//go:embed templates/*.txt mail.html
var files embed.FS

var (
	texts = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "templates/*.txt"))
	page  = htmltemplate.Must(htmltemplate.ParseFS(files, "mail.html"))
)

// Render renders a template as a mail to an address. Untrusted values in data, such as user names,
// may be any text: each stays within one line. paragraphs, untrusted as well, keep their lines, and
// stand where the template says. It fails if data lacks a value that the template uses.
func Render(name, to string, data map[string]string, paragraphs ...string) (Message, error) {
	values := map[string]string{"paragraphs": cleanParagraphs(paragraphs)}
	for key, value := range data {
		values[key] = oneLine(value)
	}

	var content strings.Builder
	if err := texts.ExecuteTemplate(&content, name+".txt", values); err != nil {
		return Message{}, fmt.Errorf("mail: %w", err)
	}

	subject, text, _ := strings.Cut(content.String(), "\n")
	text = strings.TrimSpace(text) + "\n"

	html, err := htmlOf(text, values["link"])
	if err != nil {
		return Message{}, fmt.Errorf("mail: %w", err)
	}

	return Message{To: to, Subject: subject, Text: text, HTML: html}, nil
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
func htmlOf(text, link string) (string, error) {
	type paragraph struct {
		Link  string // the paragraph is a hyperlink; "": text
		Lines []string
	}

	var paragraphs []paragraph
	for p := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if link != "" && p == link {
			paragraphs = append(paragraphs, paragraph{Link: link})
		} else {
			paragraphs = append(paragraphs, paragraph{Lines: strings.Split(p, "\n")})
		}
	}

	var b strings.Builder
	err := page.Execute(&b, paragraphs)
	return b.String(), err
}
