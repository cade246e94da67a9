package enduser

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/queue"
)

// mailOptions allow retries, since the mail server can be down for a while.
var mailOptions = queue.Options{
	Workers:     queue.Workers{Queue: "end_user_mails", PerServer: 16, PerAccount: 2}, // its server can be slow
	MaxAttempts: 6,
	Timeout:     time.Minute,
}

// mailArgs are the arguments of the job of a mail. They contain no secret: the token of a link is
// derived from its id when the mail is rendered. A job without a token looks up the user itself, so
// that a request takes the same time for known and unknown addresses.
type mailArgs struct {
	Project    uuid.UUID     `json:"project"`
	MailKind   string        `json:"mail"`
	Email      string        `json:"email"` // recipient
	Token      uuid.NullUUID `json:"token"`
	Flow       uuid.NullUUID `json:"flow"`
	RedirectTo string        `json:"redirect_to,omitempty"`
}

// Kind returns the kind of the job.
func (mailArgs) Kind() string { return "end_user_mail" }

// enqueue enqueues a mail. The row that it is about has been committed.
func (d *Directory) enqueue(ctx context.Context, m mailArgs) error {
	_, err := d.service.Queue.Insert(ctx, m)
	return err
}

// sendMail renders a mail and sends it, or has the project's hook send it. Without a mail server,
// it goes to the project's mailbox.
func (s *Service) sendMail(ctx context.Context, job *queue.Job[mailArgs]) error {
	d, err := s.Open(ctx, job.Args.Project)
	if err != nil {
		return fault.Ignore(err, fault.NotFound) // paused or deleted
	}

	if job.Args.MailKind == mailEmailChange && !job.Args.Token.Valid {
		return d.resendChange(ctx, job.Args)
	}

	if d.Hooks[hookMail] != "" {
		return d.askToMail(ctx, job)
	}

	m, err := d.renderMail(ctx, job.Args)
	if err != nil || m.To == "" {
		return err
	}
	m.ID = messageID(job)

	sender, err := s.sender(d.ProjectConfig)
	if err != nil {
		return err
	}

	if job.Attempt == 1 {
		if over := d.countSent(ctx, job.Args.MailKind, m.To, d.SMTP.URL == "" && !sender.LogOnly()); over != nil {
			d.settle(ctx, attempt{ID: m.ID, Number: job.Attempt, Kind: job.Args.MailKind, Recipient: m.To}, over)
			return queue.Cancel(over)
		}
	}

	if sender.LogOnly() {
		return d.storeMail(ctx, Mail{UUID: newID(), Recipient: m.To, Kind: job.Args.MailKind, Subject: m.Subject,
			HTML: m.HTML, Text: m.Text})
	}

	err = sender.Send(ctx, m)
	d.settle(ctx, attempt{ID: m.ID, Number: job.Attempt, Kind: job.Args.MailKind, Recipient: m.To,
		Foreign: d.SMTP.URL == ""}, err)
	if isLost(err) {
		return queue.Cancel(err)
	}

	return err
}

// messageID returns the id of the message of a job, the same in all attempts.
func messageID(job *queue.Job[mailArgs]) string {
	return fmt.Sprintf("%d.%d", job.ID, job.CreatedAt.UnixNano())
}

// resendChange enqueues the mails of a change of the address again, if there is one under way.
func (d *Directory) resendChange(ctx context.Context, args mailArgs) error {
	u, err := userByEmail(ctx, d.q(), args.Email)
	if err != nil || u.NewEmail == "" {
		return fault.Ignore(err, fault.NotFound)
	}

	var jobs []mailArgs
	err = d.tx(ctx, "sending confirmation email", func(ctx context.Context, tx pgx.Tx) error {
		jobs, err = d.changeMails(ctx, tx, u, u.NewEmail, args.Flow, args.RedirectTo)
		return err
	})
	if err != nil {
		return err
	}

	return d.enqueueAll(ctx, jobs)
}

// renderMail returns the mail of a job. It has no recipient if the user does not exist or the token
// was used or replaced.
func (d *Directory) renderMail(ctx context.Context, args mailArgs) (mail.Message, error) {
	t, u, err := d.mailToken(ctx, args)
	if fault.Is(err, fault.NotFound) {
		return mail.Message{}, nil
	}
	if err != nil {
		return mail.Message{}, err
	}

	text := d.mailText(args.MailKind, u)
	redirect := d.Redirect(args.RedirectTo)
	subject, html, body := text.render(map[string]string{
		"ConfirmationURL": d.verifyURL(t, redirect), "Token": d.keys.code(t.ID), "TokenHash": d.keys.link(t.ID),
		"SiteURL": d.SiteURL, "RedirectTo": redirect, "Email": u.Email, "NewEmail": u.NewEmail,
	}, u.UserMetadata)

	return mail.Message{To: args.Email, Subject: subject, HTML: html, Text: body}, nil
}

// verifyURL returns the address of a link.
func (d *Directory) verifyURL(t oneTime, redirect string) string {
	return d.issuer() + "/verify?token=" + url.QueryEscape(d.keys.link(t.ID)) + "&type=" + t.VerificationType +
		"&redirect_to=" + url.QueryEscape(redirect)
}

// mailToken returns the token of a mail and its user. It creates the token of a job that has none.
// It fails with NotFound if there is no such user or token.
func (d *Directory) mailToken(ctx context.Context, args mailArgs) (oneTime, User, error) {
	if args.Token.Valid {
		t, err := pg.One[oneTime](ctx, d.q(), `
			select`+oneTimeColumns+`from auth.one_time_tokens t where t.id = @id
			union all select`+signUpColumns+`from auth.sign_ups t where t.id = @id`,
			pgx.StrictNamedArgs{"id": args.Token.UUID})
		if err != nil {
			return t, User{}, err
		}

		u, err := userByID(ctx, d.q(), t.UserID)
		return t, u, err
	}

	u, err := userByEmail(ctx, d.q(), args.Email)
	if err != nil {
		return oneTime{}, u, err
	}

	t := oneTime{UserID: u.ID, RelatesTo: u.Email, FlowStateID: args.Flow, TokenType: recoveryToken}
	sent := "recovery_sent_at"
	switch args.MailKind {
	case mailRecovery:
		t.VerificationType = "recovery"
	case mailMagicLink:
		t.VerificationType = "magiclink"
	case mailConfirmation:
		t.TokenType, t.VerificationType, sent = confirmationToken, "signup", "confirmation_sent_at"
		if u.isConfirmed() {
			return t, u, errUserNotFound() // no unconfirmed one
		}
	}

	err = d.tx(ctx, "sending email", func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if t, err = renewToken(ctx, tx, t); err != nil {
			return err
		}

		return markSent(ctx, tx, u.ID, sent)
	})

	return t, u, err
}

// renewToken replaces the user's token of a kind: for a confirmation, that of the latest request to
// sign up.
func renewToken(ctx context.Context, tx pgx.Tx, t oneTime) (oneTime, error) {
	if t.TokenType == confirmationToken {
		renewed, err := renewSignUp(ctx, tx, t.UserID, t.RelatesTo, t.FlowStateID)
		if !fault.Is(err, fault.NotFound) {
			return renewed, err
		}
	}

	return createToken(ctx, tx, t)
}

// markSent records the time of a mail in a column of the user.
func markSent(ctx context.Context, tx pgx.Tx, id uuid.UUID, column string) error {
	_, err := pg.Exec(ctx, tx, `update auth.users set `+pg.Quote(column)+` = now(), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": id})
	return err
}
