// Package message delivers the messages to end users of a project: mails and text messages, by the
// senders of the project's settings or into its mailbox, which it owns.
//
// A message comes complete. Package enduser decides who gets one, has its codes and links, and
// repeats attempts.
package message

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Config has the dependencies for an [Outbox].
type Config struct {
	Project  *projectdb.Project
	Settings rules.Config
	Install  *mail.Sender     // for projects without a mail server
	Client   *outbound.Client // client for the project's mail server
	Senders  hook.Client      // client for its senders of text messages
	Log      *slog.Logger
}

// Outbox delivers a project's messages.
type Outbox struct {
	Config

	mails *mail.Sender
}

// New returns a project's outbox. It fails if the mail server settings are invalid.
func New(c Config) (*Outbox, error) {
	o := &Outbox{Config: c, mails: c.Install}
	if !o.hasServer() {
		return o, nil
	}

	server, err := c.Settings.SMTP.Server(c.Settings.Secrets[rules.SecretSMTP])
	if err != nil {
		return nil, err
	}

	o.mails, err = mail.NewOver(c.Client.Dial, server, c.Settings.SMTP.From)
	return o, err
}

// hasServer reports whether the project has its own mail server.
func (o *Outbox) hasServer() bool { return o.Settings.SMTP.URL != "" }

// UsesInstall reports whether mails go by the install's server.
func (o *Outbox) UsesInstall() bool { return !o.hasServer() && !o.mails.LogOnly() }

// Attempt is an attempt to deliver a message.
type Attempt struct {
	ID        string // message id, the same in all attempts
	Number    int    // from 1
	Kind      string
	Recipient string
}

// Record records an attempt's result in the mailbox: a failure, without the text, which has codes
// and links; or that earlier failures have ended. A failure to record it is logged only, since the
// caller would send the message again.
func (o *Outbox) Record(ctx context.Context, a Attempt, failure error) {
	o.record(ctx, a, failure, false)
}

// record is [Outbox.Record] for an attempt by the install's server, or by another one.
func (o *Outbox) record(ctx context.Context, a Attempt, failure error, byInstall bool) {
	log := o.Log.With("project", o.Project.UUID, "kind", a.Kind, "attempt", a.Number)
	id := uuid.NewSHA1(o.Project.UUID, []byte(a.Kind+" "+a.ID))
	box := Mailbox{o.Project}

	var err error
	switch {
	case failure != nil:
		log.Warn("send message to an end user", "error", failure)
		err = box.put(ctx, Mail{UUID: id, Recipient: a.Recipient, Kind: a.Kind,
			Error: failureText(failure, byInstall)})
	case a.Number > 1:
		err = box.remove(ctx, id)
	}
	if err != nil {
		log.Warn("record an attempt to send a message", "error", err)
	}
}

// failureText returns a failure as project administrators see it. Only the log tells a refused
// network from a closed port, and has the replies from the install's server.
func failureText(err error, byInstall bool) string {
	_, network := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, mail.ErrNeedsUTF8):
		return mail.ErrNeedsUTF8.Error()
	case fault.Is(err, fault.TooMany):
		return fault.Of(err).Detail
	case byInstall:
		return "the mail server of the install did not accept it"
	case network, errors.Is(err, context.DeadlineExceeded):
		return "the server can't be reached or does not respond"
	}

	return fault.Clip(err.Error())
}

// errRefused reports a message that no further attempt would deliver.
var errRefused = errors.New("message refused")

// IsPermanent reports whether no further attempt would deliver a message.
func IsPermanent(err error) bool {
	return errors.Is(err, errRefused) || errors.Is(err, mail.ErrRefused) || errors.Is(err, outbound.ErrNetwork)
}
