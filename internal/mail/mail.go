// Package mail renders e-mails from templates and sends them over SMTP, or logs them if no server
// is configured.
//
// A template is plain text. The HTML part is generated from the same text, so that both have the
// same content. Recipients, times and links belong to the callers.
package mail

import (
	"context"
	"crypto/tls"
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

	"github.com/socle-dev/socle/internal/address"
)

const sendTimeout = 30 * time.Second // for a whole SMTP session

// Message is a mail to one address.
type Message struct {
	ID         string // unique in the install; the base of its Message-ID
	To         string // address without a name
	Subject    string // one line
	Text, HTML string
}

// ErrRefused is the cause when the server rejects permanently, so that a retry is useless.
var ErrRefused = errors.New("permanently rejected")

// ErrNeedsUTF8 reports an address that the server can't take, as sender or recipient.
var ErrNeedsUTF8 = fmt.Errorf("the mail server takes no address with letters beyond ASCII before the @: %w", ErrRefused)

// Sender sends messages.
type Sender struct {
	client *gomail.Client // nil: no server configured
	from   *netmail.Address
	log    *slog.Logger
}

// New returns a sender for the server at an smtp:// or smtps:// URL, or one that logs messages if
// smtpURL is "". Its errors do not contain the URL.
func New(smtpURL, from string, log *slog.Logger) (*Sender, error) {
	if smtpURL == "" {
		return &Sender{log: log}, nil
	}

	return NewOver(nil, smtpURL, from)
}

// Dial opens a connection, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// NewOver returns a sender that reaches the server at an smtp:// or smtps:// URL by dial, or
// directly if that is nil. Its errors do not contain the URL.
func NewOver(dial Dial, smtpURL, from string) (*Sender, error) {
	sender, err := netmail.ParseAddress(from)
	if err != nil {
		return nil, fmt.Errorf("mail: sender address: %w", err)
	}

	var ok bool
	if sender.Address, ok = address.ForServer(sender.Address); !ok {
		return nil, errors.New("mail: the sender has no valid domain")
	}

	u, err := url.Parse(smtpURL)
	if err != nil {
		return nil, errors.New("mail: invalid server URL")
	}

	client, err := gomail.NewClient(u.Hostname(), options(u, dial)...)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}

	return &Sender{client: client, from: sender}, nil
}

func options(u *url.URL, dial Dial) []gomail.Option {
	port, opts := 587, []gomail.Option{gomail.WithTimeout(sendTimeout), gomail.WithTLSPolicy(gomail.TLSOpportunistic)}
	// A password requires TLS with a valid certificate.
	if user := u.User.Username(); user != "" {
		password, _ := u.User.Password()
		opts = append(opts, gomail.WithTLSPolicy(gomail.TLSMandatory),
			gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(user), gomail.WithPassword(password))
	}

	switch {
	case u.Scheme != "smtps" && dial == nil:
		dial = new(net.Dialer).DialContext
	case u.Scheme == "smtps":
		port, opts = 465, append(opts, gomail.WithSSL())
		if dial != nil {
			dial = dial.secure(u.Hostname())
		}
	}
	if dial != nil { // go-mail dials smtps directly itself
		opts = append(opts, gomail.WithDialContextFunc(gomail.DialContextFunc(dial.storingConn())))
	}

	if p, err := strconv.Atoi(u.Port()); err == nil {
		port = p
	}

	return append(opts, gomail.WithPort(port))
}

// LogOnly reports whether messages go to the log.
func (s *Sender) LogOnly() bool { return s.client == nil }

// Send sends a message. It fails with [ErrRefused] if a retry is useless.
func (s *Sender) Send(ctx context.Context, m Message) error {
	var ok bool
	to, err := netmail.ParseAddress(m.To)
	if err != nil || to.Address != m.To || to.Name != "" || strings.ContainsFunc(m.To+m.ID, unicode.IsControl) {
		return fmt.Errorf("mail: %q is not an address: %w", m.To, ErrRefused)
	}

	if to.Address, ok = address.ForServer(to.Address); !ok {
		return fmt.Errorf("mail: %q has no valid domain: %w", m.To, ErrRefused)
	}

	if s.LogOnly() {
		s.log.Info("mail", "to", m.To, "subject", oneLine(m.Subject), "text", m.Text)
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()

	var conn net.Conn
	err = s.send(context.WithValue(ctx, connKey{}, &conn), s.compose(m, to), to.Address)
	if conn != nil {
		_ = conn.Close() // left open if the server has no TLS or no authentication
	}

	if e, ok := errors.AsType[*gomail.SendError](err); ok && !e.IsTemp() && e.ErrorCode() >= 500 {
		return fmt.Errorf("mail: %w: %w", ErrRefused, err)
	}
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}

	return nil
}

// send sends a composed message. Domains are in ASCII by now; a local part beyond needs a server
// with SMTPUTF8.
func (s *Sender) send(ctx context.Context, msg *gomail.Msg, to string) error {
	server, err := s.client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return err
	}

	if ok, _ := server.Extension("SMTPUTF8"); !ok && (address.NeedsUTF8(to) || address.NeedsUTF8(s.from.Address)) {
		_ = s.client.CloseWithSMTPClient(server)
		return ErrNeedsUTF8
	}

	if err := s.client.SendWithSMTPClient(server, msg); err != nil {
		_ = s.client.CloseWithSMTPClient(server)
		return err
	}

	return s.client.CloseWithSMTPClient(server)
}

type connKey struct{}

// storingConn returns a function that stores the connection in the context's variable.
func (d Dial) storingConn() Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d(ctx, network, address)
		if target, ok := ctx.Value(connKey{}).(*net.Conn); ok && err == nil {
			*target = conn
		}

		return conn, err
	}
}

// secure returns a function whose connections begin with TLS.
func (d Dial) secure(host string) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d(ctx, network, address)
		if err != nil {
			return nil, err
		}

		tlsConn := tls.Client(conn, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
		if err := tlsConn.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}

		return tlsConn, nil
	}
}

func (s *Sender) compose(m Message, to *netmail.Address) *gomail.Msg {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(to)
	msg.Subject(oneLine(m.Subject))
	msg.SetDate()

	_, domain, _ := strings.Cut(s.from.Address, "@")
	msg.SetMessageIDWithValue(m.ID + "@" + domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // suppresses auto-replies
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)

	return msg
}

// oneLine replaces characters that could end a header line or change the visible text.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return ' '
		}
		return r
	}, text)
}
