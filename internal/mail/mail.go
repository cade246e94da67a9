// Package mail writes e-mails from templates, and sends them: over SMTP, or where no server is set into the log.
//
// A template is a text. The HTML beside it is made of the same text, so that the two never tell different things. Who gets a
// mail, when, and what its link opens is for others to say.
package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	netmail "net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
)

const sendTime = 30 * time.Second // for a whole conversation with the server

// Message is a mail to one address.
type Message struct {
	ID         string // names the message among those of this instance; sent twice it stays one
	To         string // the address alone
	Subject    string // one line
	Text, HTML string
}

// ErrRefused is the cause when the server won't take a message however often it is sent.
var ErrRefused = errors.New("the mail server refuses it for good")

// Sender sends messages.
type Sender struct {
	client *gomail.Client // nil: no server is set
	from   *netmail.Address
	log    *slog.Logger
}

// New returns a sender that hands messages to the server of an smtp:// or smtps:// URL, or writes them to the log if smtpURL
// is "". The URL's errors don't repeat it.
func New(smtpURL, from string, log *slog.Logger) (*Sender, error) {
	if smtpURL == "" {
		return &Sender{log: log}, nil
	}

	sender, err := netmail.ParseAddress(from)
	if err != nil {
		return nil, fmt.Errorf("mail: the address that mails come from: %w", err)
	}

	u, err := url.Parse(smtpURL)
	if err != nil {
		return nil, errors.New("mail: the server's URL can't be read")
	}

	client, err := gomail.NewClient(u.Hostname(), options(u)...)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}

	return &Sender{client: client, from: sender, log: log}, nil
}

func options(u *url.URL) []gomail.Option {
	port, opts := 587, []gomail.Option{gomail.WithTimeout(sendTime), gomail.WithTLSPolicy(gomail.TLSOpportunistic)}
	if user := u.User.Username(); user != "" { // a password is shown to nobody whose certificate isn't good
		password, _ := u.User.Password()
		opts = append(opts, gomail.WithTLSPolicy(gomail.TLSMandatory),
			gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(user), gomail.WithPassword(password))
	}

	if u.Scheme == "smtps" {
		port, opts = 465, append(opts, gomail.WithSSL())
	}
	if u.Scheme != "smtps" { // which has a way of its own to connect
		opts = append(opts, gomail.WithDialContextFunc(dial))
	}

	if p, err := strconv.Atoi(u.Port()); err == nil {
		port = p
	}

	return append(opts, gomail.WithPort(port))
}

// Logs reports whether messages go to the log instead of to people.
func (s *Sender) Logs() bool { return s.client == nil }

// Send sends a message. It fails with [ErrRefused] if trying again is of no use.
func (s *Sender) Send(ctx context.Context, m Message) error {
	to, err := netmail.ParseAddress(m.To)
	if err != nil || to.Address != m.To || to.Name != "" || strings.ContainsFunc(m.To+m.ID, unicode.IsControl) {
		return fmt.Errorf("mail: %q is no address: %w", m.To, ErrRefused)
	}

	if s.Logs() {
		s.log.Info("mail", "to", m.To, "subject", oneLine(m.Subject), "text", m.Text)
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()

	var conn net.Conn
	err = s.client.DialAndSendWithContext(context.WithValue(ctx, connKey{}, &conn), s.compose(m, to))
	if conn != nil {
		_ = conn.Close() // left open where the server has no TLS, or nobody to show the password to
	}

	if failed, ok := errors.AsType[*gomail.SendError](err); ok && !failed.IsTemp() && failed.ErrorCode() >= 500 {
		return fmt.Errorf("mail: %w: %w", ErrRefused, err)
	}
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}

	return nil
}

type connKey struct{}

// dial connects, and tells the context's connection.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if told, ok := ctx.Value(connKey{}).(*net.Conn); ok && err == nil {
		*told = conn
	}

	return conn, err
}

func (s *Sender) compose(m Message, to *netmail.Address) *gomail.Msg {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(to)
	msg.Subject(oneLine(m.Subject))
	msg.SetDate()

	_, domain, _ := strings.Cut(s.from.Address, "@")
	msg.SetMessageIDWithValue(m.ID + "@" + domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // so that nobody's absence answers
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)

	return msg
}

// oneLine returns text without what could end a line, and a header with it, or hide what stands there.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return ' '
		}
		return r
	}, text)
}
