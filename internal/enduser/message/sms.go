package message

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/outbound"
)

const (
	kindSMS   = "sms" // a text message's kind in the mailbox
	twilioURL = "https://api.twilio.com"
)

// ChannelWhatsApp is the message channel besides sms, the default.
const ChannelWhatsApp = "whatsapp"

// SMS is a text message with a code.
type SMS struct {
	ID      uuid.UUID // code id, the same in all attempts
	User    any       // the end user, for the project's hook
	Phone   string    // digits without plus
	Code    string
	Channel string // "": sms
}

// SendSMS sends a message by the project's sender, and records the attempt's result, from 1.
// Without a sender, the message goes to the mailbox.
func (o *Outbox) SendSMS(ctx context.Context, attempt int, m SMS) error {
	var err error
	switch o.Settings.SMS.SenderName() {
	case rules.SenderHook:
		err = o.callHook(ctx, m)
	case rules.SenderTwilio:
		err = o.callTwilio(ctx, m)
	default:
		return Mailbox{o.Project}.put(ctx, Mail{UUID: newID(), Recipient: "+" + m.Phone, Kind: kindSMS,
			Text: o.Settings.SMS.Message(m.Code, o.Settings.SiteURL)})
	}

	o.Record(ctx, Attempt{ID: m.ID.String(), Number: attempt, Kind: kindSMS, Recipient: "+" + m.Phone}, err)
	return err
}

// do sends a request to a sender, and returns the error for its status.
func (o *Outbox) do(ctx context.Context, r *http.Request) error {
	res, err := o.Senders.Do(ctx, httpx.In(ctx, o.Project.Key(ctx)), r)
	switch {
	case errors.Is(err, outbound.ErrNetwork), errors.Is(err, outbound.ErrRedirect):
		return errors.Join(errRefused, err)
	case err != nil:
		return err
	case res.Status == http.StatusTooManyRequests, res.Status >= http.StatusInternalServerError:
		return fmt.Errorf("status %d", res.Status)
	case res.Status >= http.StatusMultipleChoices:
		return fmt.Errorf("%w: status %d", errRefused, res.Status)
	}

	var failure struct {
		Error *struct {
			Code int `json:"http_code"`
		} `json:"error"`
	}
	if json.Unmarshal(res.Body, &failure) == nil && failure.Error != nil {
		return fmt.Errorf("%w: error %d", errRefused, failure.Error.Code)
	}

	return nil
}

// callHook posts the user and the code to the project's hook.
func (o *Outbox) callHook(ctx context.Context, m SMS) error {
	body, err := json.Marshal(map[string]any{"user": m.User, "sms": map[string]string{"otp": m.Code, "phone": m.Phone}})
	if err != nil {
		return err
	}

	r, err := hook.Webhook{URL: o.Settings.SMS.HookURL, Secrets: o.Settings.Secrets[rules.SecretSMSHook], ID: m.ID,
		Body: body}.Request(ctx)
	if err != nil {
		return errors.Join(errRefused, err)
	}

	return o.do(ctx, r)
}

// callTwilio sends a message by Twilio's interface.
func (o *Outbox) callTwilio(ctx context.Context, m SMS) error {
	s := o.Settings.SMS
	to, from := "+"+m.Phone, s.TwilioFrom
	if m.Channel == ChannelWhatsApp {
		to = "whatsapp:" + to
		if from != "" {
			from = "whatsapp:" + strings.TrimPrefix(from, "whatsapp:")
		}
	}

	form := url.Values{"To": {to}, "Body": {s.Message(m.Code, o.Settings.SiteURL)}}
	if s.TwilioMessagingServiceSID != "" {
		form.Set("MessagingServiceSid", s.TwilioMessagingServiceSID)
	} else {
		form.Set("From", from)
	}

	root := strings.TrimSuffix(cmp.Or(s.TwilioURL, twilioURL), "/")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		root+"/2010-04-01/Accounts/"+s.TwilioAccountSID+"/Messages.json", strings.NewReader(form.Encode()))
	if err != nil {
		return errors.Join(errRefused, err)
	}

	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(s.TwilioAccountSID, o.Settings.Secrets[rules.SecretTwilio])

	return o.do(ctx, r)
}
