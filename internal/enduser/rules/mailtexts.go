package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
)

// Kinds of mails.
const (
	MailConfirmation     = "confirmation"
	MailInvite           = "invite"
	MailMagicLink        = "magic_link"
	MailRecovery         = "recovery"
	MailEmailChange      = "email_change"
	MailReauthentication = "reauthentication"
)

const maxMailTexts = 60

// MailText is the text of a kind of mail. {{ .ConfirmationURL }} and other variables stand for
// values.
type MailText struct {
	Subject string `json:"subject" required:"false" maxLength:"200"`
	HTML    string `json:"html" required:"false" maxLength:"20000"`
	Text    string `json:"text" required:"false" maxLength:"20000"`
}

// languageTag matches the language of a text, such as de or pt-br.
var languageTag = regexp.MustCompile(`^[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}$`)

// findMailText returns the text of a kind of mail in a language: the one of the project, the one
// without the region, the one for all languages, or the default.
func findMailText(texts map[string]MailText, kind, language string) MailText {
	language = strings.ToLower(strings.ReplaceAll(language, "_", "-"))
	primary, _, _ := strings.Cut(language, "-")
	for _, name := range []string{kind + "." + language, kind + "." + primary, kind} {
		if text, ok := texts[name]; ok {
			return text
		}
	}

	return defaultMails[kind]
}

func validateMails(texts map[string]MailText) error {
	errs := []error{tooMany("mails", len(texts), maxMailTexts)}
	for kind, text := range texts {
		errs = append(errs, CheckMailText(kind, text))
	}

	return fault.Join(errs...)
}

// CheckMailText fails with Unprocessable for a text that may not stand for a kind of mail, such as
// invite or invite.de.
func CheckMailText(kind string, text MailText) error {
	field := "mails." + kind
	name, language, hasLanguage := strings.Cut(kind, ".")
	if _, ok := defaultMails[name]; !ok || (hasLanguage && !languageTag.MatchString(language)) {
		return refuse(field, "unknown", "is no kind of mail")
	}
	if err := text.check(); err != nil {
		return refuse(field, "invalid_format", "%s", err)
	}

	return nil
}

// check fails for a text without a part, with an unknown variable, or whose HTML does not show the
// place of a variable.
func (m MailText) check() error {
	if m.Subject == "" || (m.HTML == "" && m.Text == "") {
		return errors.New("needs a subject, and html or text")
	}

	for _, text := range []string{m.Subject, m.HTML, m.Text} {
		if name := unknownVariable(text); name != "" {
			return fmt.Errorf("has an unknown variable: %s; known are {{ .%s }}", name,
				strings.Join(variableNames, " }}, {{ ."))
		}
	}

	return checkHTML(m.HTML)
}

// linkText returns a mail with a link and a code.
func linkText(subject, sentence, link string) MailText {
	return MailText{Subject: subject,
		HTML: "<h2>" + subject + "</h2>\n<p>" + sentence + "</p>\n<p><a href=\"{{ .ConfirmationURL }}\">" + link +
			"</a></p>\n" +
			"<p>Or enter the code: {{ .Token }}</p>\n",
		Text: sentence + "\n\n{{ .ConfirmationURL }}\n\nOr enter the code: {{ .Token }}\n"}
}

// defaultMails are the texts of a project that has set no others.
var defaultMails = map[string]MailText{
	MailConfirmation: linkText("Confirm your address", "Follow this link to confirm your address at {{ .SiteURL }}.", "Confirm your address"),
	MailInvite:       linkText("You have been invited", "You have been invited to create an account at {{ .SiteURL }}.", "Accept the invitation"),
	MailMagicLink:    linkText("Your link to sign in", "Follow this link to sign in at {{ .SiteURL }}.", "Sign in"),
	MailRecovery:     linkText("Reset your password", "Follow this link to set a new password at {{ .SiteURL }}.", "Reset your password"),
	MailEmailChange: linkText("Confirm your new address",
		"Follow this link to confirm the change of your address from {{ .Email }} to {{ .NewEmail }}.", "Confirm the change"),
	MailReauthentication: {Subject: "{{ .Token }} is your code",
		HTML: "<h2>Confirm that it is you</h2>\n<p>Enter the code: {{ .Token }}</p>\n", Text: "Enter the code: {{ .Token }}\n"},
}
