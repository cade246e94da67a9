package enduser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
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
	Challenge uuid.NullUUID `json:"challenge"` // of a factor, instead of a token
	Channel   string        `json:"channel,omitempty"`
}

// Kind returns the kind of the job.
func (smsArgs) Kind() string { return "end_user_sms" }

// tokenMessage returns the message with the code of a token.
func (d *Directory) tokenMessage(t oneTime, channel string) smsArgs {
	return smsArgs{Project: d.UUID, Phone: t.RelatesTo, Token: someUUID(t.ID), Channel: channel}
}

// channelWhatsApp is the channel of messages besides sms, the default.
const channelWhatsApp = "whatsapp"

// checkChannel fails with Invalid for a channel that the sender lacks.
func (d *Directory) checkChannel(channel string) error {
	if channel == "" || channel == "sms" || (channel == channelWhatsApp && d.SMS.sender() == senderTwilio) {
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
	if err := d.attempts.Count(ctx, d.projectSMSLimit(), ""); err != nil {
		return asSMSLimit(err, "SMS rate limit exceeded")
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

	m, err := d.message(ctx, job.Args)
	if err != nil {
		return fault.Ignore(err, fault.NotFound) // used, replaced or expired
	}

	switch d.SMS.sender() {
	case senderHook:
		err = d.callHook(ctx, m)
	case senderTwilio:
		err = d.callTwilio(ctx, m)
	default:
		return d.storeMail(ctx, Mail{UUID: newID(), Recipient: "+" + m.Phone, Kind: mailSMS,
			Text: d.SMS.text(m.Code, d.SiteURL)})
	}

	d.settle(ctx, attempt{ID: m.ID.String(), Number: job.Attempt, Kind: mailSMS, Recipient: "+" + m.Phone}, err)
	if errors.Is(err, errSMSRefused) {
		return queue.Cancel(err)
	}

	return err
}

// message is a message to send.
type message struct {
	ID      uuid.UUID // of the token or the challenge
	User    User
	Phone   string
	Code    string
	Channel string
}

// message returns the message of a job. It fails with NotFound if its code is not valid any more.
func (d *Directory) message(ctx context.Context, args smsArgs) (message, error) {
	m := message{ID: args.Token.UUID, Phone: args.Phone, Channel: args.Channel}

	var user uuid.UUID
	var err error
	if args.Token.Valid {
		user, err = pg.Value[uuid.UUID](ctx, d.q(), `
			select t.user_id from (
				select id, user_id, relates_to, created_at from auth.one_time_tokens
				union all select id, user_id, relates_to, created_at from auth.sign_ups) t
			where t.id = @id and t.relates_to = @phone and t.created_at > now() - @age::interval`,
			pgx.StrictNamedArgs{"id": m.ID, "phone": args.Phone, "age": time.Duration(d.CodeSeconds) * time.Second})
	} else {
		m.ID = args.Challenge.UUID
		user, err = pg.Value[uuid.UUID](ctx, d.q(), `
			select f.user_id from auth.mfa_challenges c join auth.mfa_factors f on f.id = c.factor_id
			where c.id = @id and f.phone = @phone and c.verified_at is null and c.created_at > now() - @age::interval`,
			pgx.StrictNamedArgs{"id": m.ID, "phone": args.Phone, "age": challengeTTL})
	}
	if err != nil {
		return m, err
	}

	m.Code = d.keys.code(m.ID)
	m.User, err = userByID(ctx, d.q(), user)

	return m, err
}

// errSMSRefused is the failure of a message that no further attempt would deliver.
var errSMSRefused = errors.New("message refused")

// send sends a request of a sender, and returns the error of its status.
func (d *Directory) send(ctx context.Context, r *http.Request) error {
	res, err := d.service.Outbound.Do(ctx, d.Key(ctx), r)
	switch {
	case errors.Is(err, outbound.ErrNetwork), errors.Is(err, outbound.ErrRedirect):
		return errors.Join(errSMSRefused, err)
	case err != nil:
		return err
	case res.Status == http.StatusTooManyRequests, res.Status >= http.StatusInternalServerError:
		return fmt.Errorf("status %d", res.Status)
	case res.Status >= http.StatusMultipleChoices:
		return fmt.Errorf("%w: status %d", errSMSRefused, res.Status)
	}

	var failure struct {
		Error *struct {
			Code int `json:"http_code"`
		} `json:"error"`
	}
	if json.Unmarshal(res.Body, &failure) == nil && failure.Error != nil {
		return fmt.Errorf("%w: error %d", errSMSRefused, failure.Error.Code)
	}

	return nil
}

// callHook posts the user and the code to the project's hook.
func (d *Directory) callHook(ctx context.Context, m message) error {
	body, err := json.Marshal(map[string]any{"user": m.User, "sms": map[string]string{"otp": m.Code, "phone": m.Phone}})
	if err != nil {
		return err
	}

	r, err := hook.Webhook{URL: d.SMS.HookURL, Secrets: d.Secrets[hookSecret], ID: m.ID, Body: body}.Request(ctx)
	if err != nil {
		return errors.Join(errSMSRefused, err)
	}

	return d.send(ctx, r)
}

// callTwilio sends a message by Twilio's interface.
func (d *Directory) callTwilio(ctx context.Context, m message) error {
	to, from := "+"+m.Phone, d.SMS.TwilioFrom
	if m.Channel == channelWhatsApp {
		to = "whatsapp:" + to
		if from != "" {
			from = "whatsapp:" + strings.TrimPrefix(from, "whatsapp:")
		}
	}

	form := url.Values{"To": {to}, "Body": {d.SMS.text(m.Code, d.SiteURL)}}
	if d.SMS.TwilioMessagingServiceSID != "" {
		form.Set("MessagingServiceSid", d.SMS.TwilioMessagingServiceSID)
	} else {
		form.Set("From", from)
	}

	root := twilioURL
	if d.SMS.TwilioURL != "" {
		root = strings.TrimSuffix(d.SMS.TwilioURL, "/")
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		root+"/2010-04-01/Accounts/"+d.SMS.TwilioAccountSID+"/Messages.json", strings.NewReader(form.Encode()))
	if err != nil {
		return errors.Join(errSMSRefused, err)
	}

	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(d.SMS.TwilioAccountSID, d.Secrets[twilioSecret])

	return d.send(ctx, r)
}
