package enduser

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/message"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/queue"
)

// mailOptions allow retries, since the mail server can be down for a while.
var mailOptions = queue.Options{
	Workers:     queue.Workers{Queue: "end_user_mails", PerServer: 16, PerAccount: 2}, // its server can be slow
	MaxAttempts: 6,
	Timeout:     time.Minute,
}

// mailArgs are the arguments for a mail job. They contain no secret: a link's token is derived from
// its id when the mail is rendered. A job without a token looks up the user itself, so that a
// request takes the same time for known and unknown addresses.
type mailArgs struct {
	Project    uuid.UUID     `json:"project"`
	MailKind   string        `json:"mail"`
	Email      string        `json:"email"` // recipient
	Token      uuid.NullUUID `json:"token"`
	Flow       uuid.NullUUID `json:"flow"`
	RedirectTo string        `json:"redirect_to,omitempty"`
}

// Kind returns the job kind.
func (mailArgs) Kind() string { return "end_user_mail" }

// enqueue enqueues a mail. The row that it is about has been committed.
func (d *Directory) enqueue(ctx context.Context, m mailArgs) error {
	_, err := d.service.Queue.Insert(ctx, m)
	return err
}

func (d *Directory) enqueueAll(ctx context.Context, jobs []mailArgs) error {
	for _, job := range jobs {
		if err := d.enqueue(ctx, job); err != nil {
			return err
		}
	}

	return nil
}

// verifyURL returns a link's address.
func (d *Directory) verifyURL(t oneTime, redirect string) string {
	return d.Issuer() + "/verify?token=" + url.QueryEscape(d.keys.link(t.ID)) + "&type=" + t.VerificationType +
		"&redirect_to=" + url.QueryEscape(redirect)
}

// mailToken returns a mail's token and user. It creates the token if the job has none. It fails
// with NotFound if there is no such user or token.
func (d *Directory) mailToken(ctx context.Context, args mailArgs) (oneTime, User, error) {
	if args.Token.Valid {
		t, err := pg.One[oneTime](ctx, d.Rows(), `
			select`+oneTimeColumns+`from auth.one_time_tokens t where t.id = @id
			union all select`+signUpColumns+`from auth.sign_ups t where t.id = @id`,
			pgx.StrictNamedArgs{"id": args.Token.UUID})
		if err != nil {
			return t, User{}, err
		}

		u, err := userByID(ctx, d.Rows(), t.UserID)
		return t, u, err
	}

	u, err := userByEmail(ctx, d.Rows(), args.Email)
	if err != nil {
		return oneTime{}, u, err
	}

	t := oneTime{UserID: u.ID, RelatesTo: u.Email, FlowStateID: args.Flow, TokenType: recoveryToken}
	column := "recovery_sent_at"
	switch args.MailKind {
	case rules.MailRecovery:
		t.VerificationType = "recovery"
	case rules.MailMagicLink:
		t.VerificationType = "magiclink"
	case rules.MailConfirmation:
		t.TokenType, t.VerificationType, column = confirmationToken, "signup", "confirmation_sent_at"
		if u.isConfirmed() {
			return t, u, errUserNotFound() // no unconfirmed one
		}
	}

	err = d.Tx(ctx, "sending email", func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if t, err = renewToken(ctx, tx, t); err != nil {
			return err
		}

		return markSent(ctx, tx, u.ID, column)
	})

	return t, u, err
}

// renewToken replaces the user's token with the same kind: for a confirmation, the latest sign-up
// request's.
func renewToken(ctx context.Context, tx pgx.Tx, t oneTime) (oneTime, error) {
	if t.TokenType == confirmationToken {
		request, err := renewSignUp(ctx, tx, t.UserID, t.RelatesTo, t.FlowStateID)
		if !fault.Is(err, fault.NotFound) {
			return request, err
		}
	}

	return createToken(ctx, tx, t)
}

// markSent records when a mail was sent in a user column.
func markSent(ctx context.Context, tx pgx.Tx, id uuid.UUID, column string) error {
	_, err := pg.Exec(ctx, tx, `update auth.users set `+pg.Quote(column)+` = now(), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// outbox returns the project's outbox.
func (d *Directory) outbox() (*message.Outbox, error) {
	return message.New(message.Config{Project: d.db, Settings: d.Config, Install: d.service.Sender,
		Client: d.service.Outbound, Senders: d.service.Functions.Endpoints(d.db, d.service.Outbound),
		Log: d.service.Log})
}

// messageID returns a job's message id, the same in all attempts.
func messageID(job *queue.Job[mailArgs]) string {
	return fmt.Sprintf("%d.%d", job.ID, job.CreatedAt.UnixNano())
}

// attemptOf returns a job's delivery attempt.
func attemptOf(job *queue.Job[mailArgs]) message.Attempt {
	return message.Attempt{ID: messageID(job), Number: job.Attempt, Kind: job.Args.MailKind,
		Recipient: job.Args.Email}
}

// countFirst counts a job's mail at its first attempt, see [Directory.countSent]. It cancels the
// job, and records why, if the mail exceeds a limit.
func (d *Directory) countFirst(
	ctx context.Context, outbox *message.Outbox, job *queue.Job[mailArgs], shared bool,
) error {
	if job.Attempt > 1 {
		return nil
	}

	over := d.countSent(ctx, job.Args.MailKind, job.Args.Email, shared)
	if over == nil {
		return nil
	}

	outbox.Record(ctx, attemptOf(job), over)
	return queue.Cancel(over)
}
