package enduser

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// ownerMailLimit bounds the mails to one address by the mail server of the install, of all projects
// of one account together. Mails of other accounts count apart: otherwise anybody could silence an
// address in the projects of all others.
var ownerMailLimit = ratelimit.Limit{Name: "end user mail", Most: 30, Window: time.Hour}

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
	return asLimit(err, "over_request_rate_limit", "Request rate limit reached")
}

// codeGuessLimit bounds wrong codes of messages per address or number, see [ratelimit.GuessLimit].
// New codes don't reset it: all guesses together hit one of a million with 5 in 100,000 an hour.
var codeGuessLimit = ratelimit.GuessLimit{
	Network:         ratelimit.Limit{Name: "code network", Most: 10, Window: time.Hour},
	UnknownNetworks: ratelimit.Limit{Name: "code address", Most: 50, Window: time.Hour},
}

// changeLimit bounds the new addresses and numbers that a user asks for.
var changeLimit = ratelimit.Limit{Name: "change of address", Most: 10, Window: time.Hour}

func (d *Directory) projectMailLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "mails", Most: d.MailsPerHour, Window: time.Hour}
}

func (d *Directory) projectSMSLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "sms project", Most: d.SMS.PerHour, Window: time.Hour}
}

// countMail counts a request for a mail to an address. It fails with TooMany, for known and unknown
// addresses alike.
//
// A network asks for at most half of the project's mails of an hour, so that a stranger does not
// take all. The project's count itself is that of mails that are sent, see [Directory.countSent].
func (d *Directory) countMail(ctx context.Context, email string, c Client) error {
	share := ratelimit.Limit{Name: "mails network", Most: (d.MailsPerHour + 1) / 2, Window: time.Hour}
	if err := d.attempts.Count(ctx, share, c.Network); err != nil {
		return asMailLimit(err, "email rate limit exceeded")
	}

	if interval := time.Duration(d.MailIntervalSeconds) * time.Second; interval > 0 {
		err := d.attempts.Count(ctx, ratelimit.Limit{Name: "mail", Most: 1, Window: interval}, email)
		if fault.Is(err, fault.TooMany) {
			return asMailLimit(err, "For security purposes, you can only request this after %.0f seconds.",
				math.Ceil(fault.Of(err).RetryAfter.Seconds()))
		}
		if err != nil {
			return err
		}
	}

	return asMailLimit(d.attempts.Check(ctx, d.projectMailLimit(), ""), "email rate limit exceeded")
}

// countSent counts a mail of a kind before it is sent. shared says that the server of the install
// sends it. It fails with TooMany if requests that were admitted at once exceed a limit.
// Invitations, which only administrators send, don't count for the project.
func (d *Directory) countSent(ctx context.Context, kind, email string, shared bool) error {
	if kind != mailInvite {
		if err := d.attempts.Count(ctx, d.projectMailLimit(), ""); err != nil {
			return asMailLimit(err, "the project has sent its mails of the hour")
		}
	}
	if !shared {
		return nil
	}

	return asMailLimit(d.countOfOwner(ctx, ownerMailLimit, email),
		"the projects of the account have sent their mails of the hour to the address")
}

// countOfOwner counts an attempt of all projects of the account that owns this one.
func (d *Directory) countOfOwner(ctx context.Context, l ratelimit.Limit, subject string) error {
	if d.service.Attempts.Off {
		return nil
	}

	owner, err := d.service.Store.OwnerOf(ctx, d.UUID)
	if err != nil {
		return err
	}

	return d.service.Attempts.Count(ctx, l, owner.String()+"\x00"+subject)
}

// asMailLimit gives a failure of a limit the code and the text of the contract.
func asMailLimit(err error, format string, args ...any) error {
	return asLimit(err, "over_email_send_rate_limit", format, args...)
}

// numberLimit bounds the messages of a project to one number, and ownerNumberLimit those of all
// projects of an account: a message costs money and annoys the owner of the number.
var (
	numberLimit      = ratelimit.Limit{Name: "sms number", Most: 6, Window: time.Hour}
	ownerNumberLimit = ratelimit.Limit{Name: "end user sms", Most: 12, Window: time.Hour}
)

// countSMS counts a message that a client asks for. It fails with TooMany, for known and unknown
// numbers alike, and with Unprocessable for a number outside the allowed countries. Messages to
// expensive numbers are fraud by which an attacker earns, so each network has few, and all have a
// bound together: that of messages which are sent.
func (d *Directory) countSMS(ctx context.Context, phone string, c Client) error {
	if !d.SMS.allows(phone) {
		return fault.New(fault.Unprocessable, "Text messages to this number are not allowed").
			WithCode("sms_send_failed")
	}

	if _, ok := d.SMS.TestNumbers[phone]; ok { // gets no message
		return d.countRequest(ctx, d.signInLimit(), c)
	}

	network := ratelimit.Limit{Name: "sms network", Most: d.SMS.PerNetworkAndHour, Window: time.Hour}
	if err := d.attempts.Count(ctx, network, c.Network); err != nil {
		return asSMSLimit(err, "SMS rate limit exceeded")
	}

	interval := time.Duration(d.SMS.IntervalSeconds) * time.Second
	err := d.attempts.Count(ctx, ratelimit.Limit{Name: "sms", Most: 1, Window: interval}, phone)
	if fault.Is(err, fault.TooMany) {
		wait := math.Ceil(fault.Of(err).RetryAfter.Seconds())
		return asSMSLimit(err, "For security purposes, you can only request this after %.0f seconds.", wait)
	}
	if err == nil {
		err = d.attempts.Count(ctx, numberLimit, phone)
	}
	if err != nil {
		return asSMSLimit(err, "SMS rate limit exceeded")
	}

	err = d.countOfOwner(ctx, ownerNumberLimit, phone)
	if err == nil {
		err = d.attempts.Check(ctx, d.projectSMSLimit(), "")
	}

	return asSMSLimit(err, "SMS rate limit exceeded")
}

// asSMSLimit gives a failure of a limit the code and the text of the contract.
func asSMSLimit(err error, format string, args ...any) error {
	return asLimit(err, "over_sms_send_rate_limit", format, args...)
}

// asLimit gives a failure of a limit a code and a text.
func asLimit(err error, code, format string, args ...any) error {
	if !fault.Is(err, fault.TooMany) {
		return err
	}

	e := *fault.Of(err)
	e.Code, e.Detail = code, fmt.Sprintf(format, args...)

	return &e
}
