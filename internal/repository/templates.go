package repository

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// mailSubjects are the mail kinds, with the default subjects.
var mailSubjects = map[string]string{
	"confirmation": "Confirm your address", "invite": "You have been invited", "magic_link": "Your link to sign in",
	"recovery": "Reset your password", "email_change": "Confirm your new address",
	"reauthentication": "{{ .Token }} is your code",
}

// mailVariables are the variables in mails.
var mailVariables = []string{"ConfirmationURL", "Token", "TokenHash", "SiteURL", "RedirectTo", "Email", "NewEmail",
	"Data"}

const maxMailText = 20_000 // characters

// readTemplates reads the mail texts. A text that a project can't have is noted, and the default
// one stays.
func (r *settingsReader) readTemplates(templates section) {
	for _, kind := range templates.names() {
		s := templates.sub(kind)
		html, ok := r.readTemplate(s)
		if !ok {
			continue
		}

		subject, _ := s.text("subject")
		if subject == "" {
			subject = mailSubjects[kind]
		}

		unknown := unknownVariable(subject+html, mailVariables)
		switch {
		case mailSubjects[kind] == "":
			r.d.note(s.path, "is no kind of mail")
		case unknown != "":
			r.d.note(s.path, "is not used, the default text stays: variables are {{ .%s }}, not %s",
				strings.Join(mailVariables, " }}, {{ ."), unknown)
		case utf8.RuneCountInString(html) > maxMailText:
			r.d.note(s.path, "is not used, the default text stays: it is longer than %d characters", maxMailText)
		default:
			r.set(s.path, map[string]any{"subject": subject, "html": html}, "mails", kind)
		}
	}
}

// readTemplate returns a mail's HTML. It reports false if the text has only a subject.
func (r *settingsReader) readTemplate(s section) (string, bool) {
	if html, ok := s.text("content"); ok && html != "" {
		return html, true
	}

	name, ok := s.text("content_path")
	if !ok || name == "" {
		if s.values["subject"] != nil {
			_, _ = s.text("subject")
			r.d.note(s.path, "is not used: it needs content_path beside its subject")
		}
		return "", false
	}

	text, err := r.read(name)
	if err != nil || !utf8.Valid(text) {
		r.d.problem(s.key("content_path"), "must be a readable text file in the repository: %s", name)
		return "", false
	}

	text = bytes.TrimPrefix(text, byteOrderMark)
	return strings.ReplaceAll(string(text), "\r\n", "\n"), true
}

var (
	variable = regexp.MustCompile(`^\{\{\s*\.([A-Za-z]+)((?:\.[A-Za-z0-9_]+)*)\s*\}\}$`)
	action   = regexp.MustCompile(`\{\{[^}]*\}?\}?`)
)

// unknownVariable returns the first {{ … }} of a text that is none of the variables; "": all are.
func unknownVariable(text string, variables []string) string {
	for _, candidate := range action.FindAllString(text, -1) {
		m := variable.FindStringSubmatch(candidate)
		if m == nil || !slices.Contains(variables, m[1]) || (m[2] != "" && m[1] != "Data") {
			return candidate
		}
	}

	return ""
}
