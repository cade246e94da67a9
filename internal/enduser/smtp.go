package enduser

import (
	"errors"
	"net/url"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/outbound"
)

// SMTP is the mail server of a project.
type SMTP struct {
	URL  string `json:"url,omitempty" maxLength:"500" doc:"smtp:// or smtps:// URL of the server, with the user if it wants one. Absent: the server of the install."`
	From string `json:"from,omitempty" maxLength:"320" doc:"Address of the sender, with or without a name."`
}

// smtpSecret is the name of the password of the mail server.
const smtpSecret = "smtp"

// sender returns the sender of the project's mails: by its own server, or by that of the install.
func (s *Service) sender(c ProjectConfig) (*mail.Sender, error) {
	if c.SMTP.URL == "" {
		return s.Sender, nil
	}

	u, err := url.Parse(c.SMTP.URL)
	if err != nil {
		return nil, err
	}

	if name := u.User.Username(); name != "" {
		u.User = url.UserPassword(name, c.Secrets[smtpSecret])
	}

	return mail.NewOver(s.Outbound.Dial, u.String(), c.SMTP.From)
}

// checkSMTP fails with Unprocessable unless mails can be sent by the project's server.
func (s *Service) checkSMTP(c ProjectConfig) error {
	if c.SMTP.URL == "" {
		return nil
	}

	u, err := url.Parse(c.SMTP.URL)
	password := false
	if err == nil {
		_, password = u.User.Password()
	}

	refuse := func(format string, args ...any) error {
		return fault.OnField(fault.Unprocessable, "smtp", "invalid_format", format, args...)
	}

	switch {
	case err != nil, u.Hostname() == "", u.Scheme != "smtp" && u.Scheme != "smtps", u.RawQuery != "", u.Path != "":
		return refuse("must have a url such as smtps://user@smtp.example.com")
	case password:
		return refuse("must have a url without password: it is the secret smtp")
	case u.User.Username() != "" && c.Secrets[smtpSecret] == "":
		return refuse("needs the secret smtp, the password of the user")
	}

	if _, err := s.sender(c); err != nil {
		return refuse("must have an address in from")
	}

	return nil
}

// isLost reports whether no further attempt would send a mail.
func isLost(err error) bool {
	return errors.Is(err, mail.ErrRefused) || errors.Is(err, outbound.ErrNetwork)
}
