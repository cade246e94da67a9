package enduser

import (
	"context"
	"fmt"
	"math"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// CountRequest counts a request from a network. It fails with TooMany.
func (d *Directory) CountRequest(ctx context.Context, l ratelimit.Limit, c Client) error {
	return asRequestLimit(d.attempts.Count(ctx, l, c.Network))
}

// countChange counts a request for a new address or number: per user, and per network, since
// anonymous users are many.
func (d *Directory) countChange(ctx context.Context, u User, c Client) error {
	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return err
	}
	return asRequestLimit(d.attempts.Count(ctx, rules.ChangeLimit, u.ID.String()))
}

// wrongCode charges a wrong code to the network that has sent it, and returns its failure.
func (d *Directory) wrongCode(ctx context.Context, address string, c Client) error {
	if err := d.attempts.CountGuess(ctx, rules.CodeLimit, address, c.Network); err != nil &&
		!fault.Is(err, fault.TooMany) {
		return err
	}
	return errCode()
}

// countMail counts a request for a mail to an address. It fails with TooMany, for known and unknown
// addresses alike. The project's count covers mails that are sent, see [Directory.countSent].
func (d *Directory) countMail(ctx context.Context, email string, c Client) error {
	if err := d.attempts.Count(ctx, d.MailNetworkLimit(), c.Network); err != nil {
		return asMailLimit(err, "email rate limit exceeded")
	}

	if interval := d.MailIntervalLimit(); interval.Window > 0 {
		if err := d.attempts.Count(ctx, interval, email); err != nil {
			return asMailLimit(err, "%s", waitText(err))
		}
	}

	return asMailLimit(d.attempts.Check(ctx, d.MailLimit(), ""), "email rate limit exceeded")
}

// countSent counts a mail before it is sent. shared says that the install's server sends it. It
// fails with TooMany if requests that were admitted at once exceed a limit. Invitations, which only
// administrators send, don't count for the project.
func (d *Directory) countSent(ctx context.Context, kind, email string, shared bool) error {
	if kind != rules.MailInvite {
		if err := d.attempts.Count(ctx, d.MailLimit(), ""); err != nil {
			return asMailLimit(err, "the project has sent its mails of the hour")
		}
	}
	if !shared {
		return nil
	}

	return asMailLimit(d.countOfOwner(ctx, rules.OwnerMailLimit, email),
		"the projects of the account have sent their mails of the hour to the address")
}

// countOfOwner counts an attempt across all projects that this project's account owns.
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

// countSMS counts a message that a client asks for. It fails with TooMany, for known and unknown
// numbers alike, and with Unprocessable for a number outside the allowed countries. All networks
// share a bound: the one for messages that are sent.
func (d *Directory) countSMS(ctx context.Context, phone string, c Client) error {
	if !d.SMS.Allows(phone) {
		return fault.New(fault.Unprocessable, "Text messages to this number are not allowed").
			WithCode("sms_send_failed")
	}

	if _, ok := d.SMS.TestNumbers[phone]; ok { // gets no message
		return d.CountRequest(ctx, d.SignInLimit(), c)
	}

	if err := d.attempts.Count(ctx, d.SMS.NetworkLimit(), c.Network); err != nil {
		return asSMSLimit(err)
	}
	if err := d.attempts.Count(ctx, d.SMS.IntervalLimit(), phone); err != nil {
		return asLimit(err, smsLimitCode, "%s", waitText(err))
	}
	if err := d.attempts.Count(ctx, rules.NumberLimit, phone); err != nil {
		return asSMSLimit(err)
	}
	if err := d.countOfOwner(ctx, rules.OwnerNumberLimit, phone); err != nil {
		return asSMSLimit(err)
	}

	return asSMSLimit(d.attempts.Check(ctx, d.SMS.ProjectLimit(), ""))
}

// The contract's codes for limits.
const (
	requestLimitCode = "over_request_rate_limit"
	mailLimitCode    = "over_email_send_rate_limit"
	smsLimitCode     = "over_sms_send_rate_limit"
)

func asRequestLimit(err error) error {
	return asLimit(err, requestLimitCode, "Request rate limit reached")
}

func asMailLimit(err error, format string, args ...any) error {
	return asLimit(err, mailLimitCode, format, args...)
}

func asSMSLimit(err error) error { return asLimit(err, smsLimitCode, "SMS rate limit exceeded") }

// asLimit gives a limit's failure a code and a text from the contract.
func asLimit(err error, code, format string, args ...any) error {
	if !fault.Is(err, fault.TooMany) {
		return err
	}

	e := *fault.Of(err)
	e.Code, e.Detail = code, fmt.Sprintf(format, args...)

	return &e
}

// waitText returns the contract's text for a pause between two messages.
func waitText(err error) string {
	return fmt.Sprintf("For security purposes, you can only request this after %.0f seconds.",
		math.Ceil(fault.Of(err).RetryAfter.Seconds()))
}
