package enduser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/message"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/mail"
)

// InviteByMember is [Directory.Invite] by a project member, who has the limits of mails. A program
// with a secret key has them at the sending alone.
func (d *Directory) InviteByMember(
	ctx context.Context, address string, data json.RawMessage, redirect string, c Client,
) (User, error) {
	email, err := cleanEmail(address)
	if err != nil {
		return User{}, err
	}
	if err := d.countMail(ctx, email, c); err != nil {
		return User{}, err
	}

	return d.Invite(ctx, email, data, redirect, c)
}

// SendMail mails a user a link for a project member: to set a new password, to sign in, or to
// confirm the address. It fails with TooMany beyond the limits of mails, and with Unprocessable for
// a user without an address, a confirmed one, or another kind of mail.
func (d *Directory) SendMail(ctx context.Context, id uuid.UUID, kind, redirect string, c Client) (User, error) {
	u, err := userByID(ctx, d.Rows(), id)
	if err != nil {
		return User{}, err
	}

	switch {
	case u.DeletedAt != nil:
		return u, errUserNotFound()
	case u.Email == "":
		return u, fault.New(fault.Unprocessable, "the user has no address").WithCode("no_address")
	case kind == rules.MailConfirmation && u.isConfirmed():
		return u, fault.OnField(fault.Unprocessable, "kind", "already_confirmed",
			"does not apply: the address is confirmed")
	}
	if err := d.countMail(ctx, u.Email, c); err != nil {
		return u, err
	}

	switch kind {
	case rules.MailMagicLink:
		return u, d.sendCodeAgain(ctx, u, LinkRequest{RedirectTo: redirect}, json.RawMessage("{}"), c)
	case rules.MailRecovery, rules.MailConfirmation:
	default:
		return u, fault.OnField(fault.Unprocessable, "kind", "unknown", "must be recovery, magic_link or confirmation")
	}

	action := map[string]string{rules.MailRecovery: "user_recovery_requested",
		rules.MailConfirmation: "user_confirmation_requested"}[kind]
	err = d.Tx(ctx, "sending email", func(ctx context.Context, tx pgx.Tx) error { return d.log(ctx, tx, action, u, c) })
	if err != nil {
		return u, err
	}

	return u, d.enqueue(ctx, mailArgs{Project: d.UUID, MailKind: kind, Email: u.Email, RedirectTo: redirect})
}

// MailDraft is a mail to look at before any user gets it.
type MailDraft struct {
	Kind     string
	Language string          // "": that for all languages
	Text     *rules.MailText // nil: the stored one
}

// PreviewMail returns a mail with example values. Its link and its code are valid for nobody. It
// fails with Unprocessable for an unknown kind and for a text that breaks a rule.
func (d *Directory) PreviewMail(draft MailDraft) (mail.Message, error) {
	key := draft.Kind
	if draft.Language != "" {
		key += "." + draft.Language
	}

	text := d.MailText(draft.Kind, draft.Language)
	if draft.Text != nil {
		text = *draft.Text
	}
	if err := rules.CheckMailText(key, text); err != nil {
		return mail.Message{}, err
	}

	redirect := d.Redirect("")
	link := d.Issuer() + "/verify?token=example&type=" + draft.Kind + "&redirect_to=" + url.QueryEscape(redirect)

	return message.RenderMail(text, message.Values{Fields: map[string]string{
		"ConfirmationURL": link, "Token": "123456", "TokenHash": "example", "SiteURL": d.SiteURL,
		"RedirectTo": redirect, "Email": "grace@example.com", "NewEmail": "grace.hopper@example.com",
	}, Data: json.RawMessage(`{"name": "Grace", "language": "en"}`)}), nil
}

// testMailTimeout bounds the conversation with the mail server.
const testMailTimeout = 20 * time.Second

// SendTestMail sends a mail with example values to the address of a project member, and waits for
// the mail server: its failure is Unprocessable and says why. It has the limits of mails. Without a
// server, the mail goes to the mailbox.
func (d *Directory) SendTestMail(ctx context.Context, draft MailDraft, to string, c Client) error {
	m, err := d.PreviewMail(draft)
	if err != nil {
		return err
	}

	if m.To, err = cleanEmail(to); err != nil {
		return err
	}
	if err := d.countMail(ctx, m.To, c); err != nil {
		return err
	}

	outbox, err := d.outbox()
	if err != nil {
		return err
	}
	if err := d.countSent(ctx, draft.Kind, m.To, outbox.UsesInstall()); err != nil {
		return err
	}

	m.ID = fmt.Sprintf("test.%d", now().UnixNano())
	ctx, cancel := context.WithTimeout(ctx, testMailTimeout)
	defer cancel()

	return outbox.SendTest(ctx, message.Attempt{ID: m.ID, Number: 1, Kind: draft.Kind, Recipient: m.To}, m)
}
