package enduser

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// instanceMailLimit bounds the mails of all projects to one address, so that several projects of
// one author don't flood it.
var instanceMailLimit = ratelimit.Limit{Name: "end user mail", Most: 30, Window: time.Hour}

// guessLimit bounds wrong passwords, see [ratelimit.GuessLimit].
var guessLimit = ratelimit.GuessLimit{
	Network:         ratelimit.Limit{Name: "password network", Most: 10, Window: 5 * time.Minute},
	UnknownNetworks: ratelimit.Limit{Name: "password account", Most: 50, Window: 5 * time.Minute},
}

// factorLimit bounds the codes of second factors that a user sends.
var factorLimit = ratelimit.Limit{Name: "factor", Most: 10, Window: 5 * time.Minute}

func (d *Directory) signInLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "sign in", Most: d.SignInsPerFiveMinutes, Window: 5 * time.Minute}
}

func (d *Directory) checkLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "check", Most: d.ChecksPerFiveMinutes, Window: 5 * time.Minute}
}

func (d *Directory) anonymousLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "anonymous", Most: d.AnonymousPerHour, Window: time.Hour}
}

// countRequest counts a request from a network. It fails with TooMany.
func (d *Directory) countRequest(ctx context.Context, l ratelimit.Limit, c Client) error {
	return asRequestLimit(d.attempts.Count(ctx, l, c.Network))
}

func asRequestLimit(err error) error {
	if !fault.Is(err, fault.TooMany) {
		return err
	}

	e := *fault.Of(err)
	e.Code, e.Detail = "over_request_rate_limit", "Request rate limit reached"

	return &e
}

// countMail counts a mail to an address. It fails with TooMany, for known and unknown addresses
// alike.
func (d *Directory) countMail(ctx context.Context, email string) error {
	interval := time.Duration(d.MailIntervalSeconds) * time.Second
	if interval > 0 {
		err := d.attempts.Count(ctx, ratelimit.Limit{Name: "mail", Most: 1, Window: interval}, email)
		if fault.Is(err, fault.TooMany) {
			e := *fault.Of(err)
			e.Code = "over_email_send_rate_limit"
			e.Detail = fault.New(fault.TooMany, "For security purposes, you can only request this after %.0f seconds.",
				math.Ceil(e.RetryAfter.Seconds())).Detail

			return &e
		}
		if err != nil {
			return err
		}
	}

	err := d.attempts.Count(ctx, ratelimit.Limit{Name: "mails", Most: d.MailsPerHour, Window: time.Hour}, "")
	if err == nil {
		err = d.service.Attempts.Count(ctx, instanceMailLimit, email)
	}
	if fault.Is(err, fault.TooMany) {
		e := *fault.Of(err)
		e.Code, e.Detail = "over_email_send_rate_limit", "email rate limit exceeded"

		return &e
	}

	return err
}

// numberLimit bounds the messages of a project to one number, and instanceNumberLimit those of all
// projects: a message costs money and annoys the owner of the number.
var (
	numberLimit         = ratelimit.Limit{Name: "sms number", Most: 6, Window: time.Hour}
	instanceNumberLimit = ratelimit.Limit{Name: "end user sms", Most: 12, Window: time.Hour}
)

// countSMS counts a message that a client asks for. It fails with TooMany, for known and unknown
// numbers alike, and with Unprocessable for a number outside the allowed countries. Messages to
// expensive numbers are fraud by which an attacker earns, so each network has few, and all have a
// bound together.
func (d *Directory) countSMS(ctx context.Context, phone string, c Client) error {
	if !d.SMS.allows(phone) {
		return fault.New(fault.Unprocessable, "Text messages to this number are not allowed").
			WithCode("sms_send_failed")
	}

	if _, ok := d.SMS.TestNumbers[phone]; ok { // gets no message
		return d.countRequest(ctx, d.signInLimit(), c)
	}

	interval := time.Duration(d.SMS.IntervalSeconds) * time.Second
	err := d.attempts.Count(ctx, ratelimit.Limit{Name: "sms", Most: 1, Window: interval}, phone)
	if fault.Is(err, fault.TooMany) {
		wait := math.Ceil(fault.Of(err).RetryAfter.Seconds())
		return asSMSLimit(err, "For security purposes, you can only request this after %.0f seconds.", wait)
	}

	for _, l := range []struct {
		attempts ratelimit.Attempts
		limit    ratelimit.Limit
		subject  string
	}{
		{d.attempts, numberLimit, phone},
		{d.attempts, ratelimit.Limit{Name: "sms network", Most: d.SMS.PerNetworkAndHour, Window: time.Hour}, c.Network},
		{d.service.Attempts, instanceNumberLimit, phone},
		{d.attempts, ratelimit.Limit{Name: "sms project", Most: d.SMS.PerHour, Window: time.Hour}, ""},
	} {
		if err == nil {
			err = l.attempts.Count(ctx, l.limit, l.subject)
		}
	}

	return asSMSLimit(err, "SMS rate limit exceeded")
}

// asSMSLimit gives a failure of a limit the code and the text of the contract.
func asSMSLimit(err error, format string, args ...any) error {
	if !fault.Is(err, fault.TooMany) {
		return err
	}

	e := *fault.Of(err)
	e.Code, e.Detail = "over_sms_send_rate_limit", fmt.Sprintf(format, args...)

	return &e
}
