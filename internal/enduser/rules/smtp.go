package rules

import (
	"net/url"

	"github.com/socle-dev/socle/internal/mail"
)

// SMTP is the mail server of a project.
type SMTP struct {
	URL  string `json:"url,omitempty" maxLength:"500" doc:"smtp:// or smtps:// URL of the server, with the user if it wants one. Absent: the server of the install."`
	From string `json:"from,omitempty" maxLength:"320" doc:"Address of the sender, with or without a name."`
}

// Server returns the URL of the server with the password of the user, if it has one.
func (s SMTP) Server(password string) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", err
	}

	if name := u.User.Username(); name != "" {
		u.User = url.UserPassword(name, password)
	}

	return u.String(), nil
}

// validate fails with Unprocessable unless mails can be sent by the server with a password.
func (s SMTP) validate(password string) error {
	if s.URL == "" {
		return nil
	}

	u, err := url.Parse(s.URL)
	hasPassword := false
	if err == nil {
		_, hasPassword = u.User.Password()
	}

	invalid := func(text string) error { return refuse("smtp", "invalid_format", "%s", text) }
	switch {
	case err != nil, u.Hostname() == "", u.Scheme != "smtp" && u.Scheme != "smtps", u.RawQuery != "", u.Path != "":
		return invalid("must have a url such as smtps://user@smtp.example.com")
	case hasPassword:
		return invalid("must have a url without password: it is the secret smtp")
	case u.User.Username() != "" && password == "":
		return invalid("needs the secret smtp, the password of the user")
	}

	server, err := s.Server(password)
	if err == nil {
		_, err = mail.NewOver(nil, server, s.From)
	}
	if err != nil {
		return invalid("must have an address in from")
	}

	return nil
}
