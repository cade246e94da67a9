package enduser

import (
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

// Kinds of mails.
const (
	mailConfirmation     = "confirmation"
	mailInvite           = "invite"
	mailMagicLink        = "magic_link"
	mailRecovery         = "recovery"
	mailEmailChange      = "email_change"
	mailReauthentication = "reauthentication"
	mailSMS              = "sms" // a text message in the mailbox
)

// languageTag matches the language of a text, such as de or pt-br.
var languageTag = regexp.MustCompile(`^[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}$`)

// mailText returns the text of a kind of mail for a user: in the language of the member language of
// their metadata if the project has it, then without the region, then the one for all.
func (d *Directory) mailText(kind string, u User) MailText {
	var metadata struct {
		Language any `json:"language"`
	}
	_ = json.Unmarshal(u.UserMetadata, &metadata) // an object

	language, _ := metadata.Language.(string)
	language = strings.ToLower(strings.ReplaceAll(language, "_", "-"))
	primary, _, _ := strings.Cut(language, "-")
	for _, name := range []string{kind + "." + language, kind + "." + primary, kind} {
		if text, ok := d.Mails[name]; ok {
			return text
		}
	}

	return defaultMails[kind]
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
	mailConfirmation: linkText("Confirm your address", "Follow this link to confirm your address at {{ .SiteURL }}.", "Confirm your address"),
	mailInvite:       linkText("You have been invited", "You have been invited to create an account at {{ .SiteURL }}.", "Accept the invitation"),
	mailMagicLink:    linkText("Your link to sign in", "Follow this link to sign in at {{ .SiteURL }}.", "Sign in"),
	mailRecovery:     linkText("Reset your password", "Follow this link to set a new password at {{ .SiteURL }}.", "Reset your password"),
	mailEmailChange: linkText("Confirm your new address",
		"Follow this link to confirm the change of your address from {{ .Email }} to {{ .NewEmail }}.", "Confirm the change"),
	mailReauthentication: {Subject: "{{ .Token }} is your code",
		HTML: "<h2>Confirm that it is you</h2>\n<p>Enter the code: {{ .Token }}</p>\n", Text: "Enter the code: {{ .Token }}\n"},
}

// variable matches a variable in a text. Data has members of its own.
var variable = regexp.MustCompile(`\{\{\s*\.([A-Za-z]+)((?:\.[A-Za-z0-9_]+)*)\s*\}\}`)

// variableNames are the variables of texts.
var variableNames = []string{"ConfirmationURL", "Token", "TokenHash", "SiteURL", "RedirectTo", "Email",
	"NewEmail", "Data"}

// unknownVariable returns the first {{ … }} of a text that stands for nothing, "" if there is none.
func unknownVariable(text string) string {
	for _, found := range regexp.MustCompile(`\{\{[^}]*\}?\}?`).FindAllString(text, -1) {
		parts := variable.FindStringSubmatch(found)
		if parts == nil || parts[0] != found || (parts[2] != "" && parts[1] != "Data") {
			return found
		}

		known := false
		for _, name := range variableNames {
			known = known || name == parts[1]
		}
		if !known {
			return found
		}
	}

	return ""
}

// maxFilled is the maximum number of bytes of a text's values. Values can be long and stand often.
const maxFilled = 100_000

// lookUp returns a function that returns the value of a variable, or "" once the values have
// maxFilled bytes. data is the user's metadata.
func lookUp(values map[string]string, data json.RawMessage) func(name string) string {
	var metadata any
	_ = json.Unmarshal(data, &metadata) // an object

	left := maxFilled
	return func(name string) string {
		value := values[name]
		if first, path, _ := strings.Cut(name, "."); first == "Data" {
			value = member(metadata, strings.Split(path, "."))
		}

		value = oneLine(value)
		if left -= len(template.HTMLEscapeString(value)); left < 0 {
			return ""
		}

		return value
	}
}

// fill replaces the variables of a plain text.
func fill(text string, value func(name string) string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		parts := variable.FindStringSubmatch(match)
		return value(parts[1] + parts[2])
	})
}

// member returns the text of a member of a decoded JSON object.
func member(value any, path []string) string {
	for _, name := range path {
		members, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = members[name]
	}

	switch v := value.(type) {
	case nil, map[string]any, []any:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// oneLine removes line breaks and other control characters, which a value has no use for.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

// render returns the subject and the parts of a mail. Without HTML, or if that was stored when any
// was accepted and does not show the place of a value, the HTML part is the text.
func (m MailText) render(values map[string]string, data json.RawMessage) (subject, htmlPart, text string) {
	subject, text = fill(m.Subject, lookUp(values, data)), fill(m.Text, lookUp(values, data))
	if text == "" {
		text = fmt.Sprintf("%s\n\n%s\n", values["ConfirmationURL"], values["Token"])
	}

	htmlPart, err := fillHTML(m.HTML, lookUp(values, data))
	if err != nil || htmlPart == "" {
		htmlPart = "<pre>" + template.HTMLEscapeString(text) + "</pre>\n"
	}

	return oneLine(subject), htmlPart, text
}
