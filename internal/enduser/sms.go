package enduser

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/message"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/queue"
)

// smsOptions allow few attempts, since one that times out may have cost a message. A project has
// one worker: its hook can be slow.
var smsOptions = queue.Options{
	Workers:     queue.Workers{Queue: "end_user_sms", PerServer: 16, PerAccount: 2},
	MaxAttempts: 3,
	Timeout:     2 * outbound.Timeout,
}

// smsArgs are the arguments of the job of a text message. They contain no secret: the code is
// derived from the id when the message is sent.
type smsArgs struct {
	Project   uuid.UUID     `json:"project"`
	Phone     string        `json:"phone"`
	Token     uuid.NullUUID `json:"token"`     // one-time token of the code
	Challenge uuid.NullUUID `json:"challenge"` // challenge of a factor, instead of a token
	Channel   string        `json:"channel,omitempty"`
}

// Kind returns the kind of the job.
func (smsArgs) Kind() string { return "end_user_sms" }

// tokenMessage returns the message with the code of a token.
func (d *Directory) tokenMessage(t oneTime, channel string) smsArgs {
	return smsArgs{Project: d.UUID, Phone: t.RelatesTo, Token: someUUID(t.ID), Channel: channel}
}

// checkChannel fails with Invalid for a channel that the sender lacks.
func (d *Directory) checkChannel(channel string) error {
	switch {
	case channel == "", channel == "sms":
		return nil
	case channel == message.ChannelWhatsApp && d.SMS.SenderName() == rules.SenderTwilio:
		return nil
	}

	return errInvalid("Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' is only supported if Twilio or " +
		"Twilio Verify is used as the provider.")
}

// enqueueSMS enqueues a message, but to a test number, and counts it. The row that it is about has
// been committed.
func (d *Directory) enqueueSMS(ctx context.Context, m smsArgs) error {
	if _, ok := d.SMS.TestNumbers[m.Phone]; ok {
		return nil
	}
	if err := d.attempts.Count(ctx, d.SMS.ProjectLimit(), ""); err != nil {
		return asSMSLimit(err)
	}

	_, err := d.service.Queue.Insert(ctx, m)
	return err
}

// sendSMS sends a message by the project's sender.
func (s *Service) sendSMS(ctx context.Context, job *queue.Job[smsArgs]) error {
	d, err := s.Open(ctx, job.Args.Project)
	if err != nil {
		return fault.Ignore(err, fault.NotFound) // paused or deleted
	}

	m, err := d.composeSMS(ctx, job.Args)
	if err != nil {
		return fault.Ignore(err, fault.NotFound) // used, replaced or expired
	}

	outbox, err := d.outbox()
	if err != nil {
		return err
	}

	err = outbox.SendSMS(ctx, job.Attempt, m)
	if message.IsPermanent(err) {
		return queue.Cancel(err)
	}

	return err
}

// composeSMS returns the message of a job. It fails with NotFound if its code is not valid any
// more.
func (d *Directory) composeSMS(ctx context.Context, args smsArgs) (message.SMS, error) {
	m := message.SMS{ID: args.Token.UUID, Phone: args.Phone, Channel: args.Channel}

	var user uuid.UUID
	var err error
	if args.Token.Valid {
		user, err = pg.Value[uuid.UUID](ctx, d.Rows(), `
			select t.user_id from (
				select id, user_id, relates_to, created_at from auth.one_time_tokens
				union all select id, user_id, relates_to, created_at from auth.sign_ups) t
			where t.id = @id and t.relates_to = @phone and t.created_at > now() - @age::interval`,
			pgx.StrictNamedArgs{"id": m.ID, "phone": args.Phone, "age": time.Duration(d.CodeSeconds) * time.Second})
	} else {
		m.ID = args.Challenge.UUID
		user, err = pg.Value[uuid.UUID](ctx, d.Rows(), `
			select f.user_id from auth.mfa_challenges c join auth.mfa_factors f on f.id = c.factor_id
			where c.id = @id and f.phone = @phone and c.verified_at is null and c.created_at > now() - @age::interval`,
			pgx.StrictNamedArgs{"id": m.ID, "phone": args.Phone, "age": challengeTTL})
	}
	if err != nil {
		return m, err
	}

	m.Code = d.keys.code(m.ID)
	m.User, err = userByID(ctx, d.Rows(), user)

	return m, err
}
