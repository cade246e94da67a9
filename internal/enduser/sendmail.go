package enduser

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/message"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/queue"
)

// sendMail renders a mail and sends it, or has the project's hook send it.
func (s *Service) sendMail(ctx context.Context, job *queue.Job[mailArgs]) error {
	d, err := s.Open(ctx, job.Args.Project)
	if err != nil {
		return fault.Ignore(err, fault.NotFound) // paused or deleted
	}

	if job.Args.MailKind == rules.MailEmailChange && !job.Args.Token.Valid {
		return d.resendChange(ctx, job.Args)
	}

	if d.Hooks[rules.HookMail] != "" {
		return d.askToMail(ctx, job)
	}

	m, err := d.renderMail(ctx, job.Args)
	if err != nil || m.To == "" {
		return err
	}
	m.ID = messageID(job)

	outbox, err := d.outbox()
	if err != nil {
		return err
	}
	if err := d.countFirst(ctx, outbox, job, outbox.UsesInstall()); err != nil {
		return err
	}

	err = outbox.SendMail(ctx, attemptOf(job), m)
	if message.IsPermanent(err) {
		return queue.Cancel(err)
	}

	return err
}

// resendChange enqueues the mails of a change of the address again, if there is one under way.
func (d *Directory) resendChange(ctx context.Context, args mailArgs) error {
	u, err := userByEmail(ctx, d.Rows(), args.Email)
	if err != nil || u.NewEmail == "" {
		return fault.Ignore(err, fault.NotFound)
	}

	var jobs []mailArgs
	err = d.Tx(ctx, "sending confirmation email", func(ctx context.Context, tx pgx.Tx) error {
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

	redirect := d.Redirect(args.RedirectTo)
	m := message.RenderMail(d.MailText(args.MailKind, u.language()), message.Values{Fields: map[string]string{
		"ConfirmationURL": d.verifyURL(t, redirect), "Token": d.keys.code(t.ID), "TokenHash": d.keys.link(t.ID),
		"SiteURL": d.SiteURL, "RedirectTo": redirect, "Email": u.Email, "NewEmail": u.NewEmail,
	}, Data: u.UserMetadata})
	m.To = args.Email

	return m, nil
}
