package rules

import (
	"time"

	"github.com/socle-dev/socle/internal/ratelimit"
)

// OwnerMailLimit bounds the mails to one address by the mail server of the install, of all projects
// of one account together. Mails of other accounts count apart: otherwise anybody could silence an
// address in the projects of all others.
var OwnerMailLimit = ratelimit.Limit{Name: "end user mail", Most: 30, Window: time.Hour}

// PasswordLimit bounds wrong passwords, see [ratelimit.GuessLimit].
var PasswordLimit = ratelimit.GuessLimit{
	Network:         ratelimit.Limit{Name: "password network", Most: 10, Window: 5 * time.Minute},
	UnknownNetworks: ratelimit.Limit{Name: "password account", Most: 50, Window: 5 * time.Minute},
}

// CodeLimit bounds wrong codes of messages per address or number, see [ratelimit.GuessLimit]. New
// codes don't reset it: all guesses together hit one of a million with 5 in 100,000 an hour.
var CodeLimit = ratelimit.GuessLimit{
	Network:         ratelimit.Limit{Name: "code network", Most: 10, Window: time.Hour},
	UnknownNetworks: ratelimit.Limit{Name: "code address", Most: 50, Window: time.Hour},
}

// FactorLimit bounds the codes of second factors that a user sends.
var FactorLimit = ratelimit.Limit{Name: "factor", Most: 10, Window: 5 * time.Minute}

// ChangeLimit bounds the new addresses and numbers that a user asks for.
var ChangeLimit = ratelimit.Limit{Name: "change of address", Most: 10, Window: time.Hour}

// NumberLimit bounds the messages of a project to one number, and OwnerNumberLimit those of all
// projects of an account: a message costs money and annoys the owner of the number.
var (
	NumberLimit      = ratelimit.Limit{Name: "sms number", Most: 6, Window: time.Hour}
	OwnerNumberLimit = ratelimit.Limit{Name: "end user sms", Most: 12, Window: time.Hour}
)

// SignInLimit bounds the sign-ups and log-ins from a network.
func (s *Settings) SignInLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "sign in", Most: s.SignInsPerFiveMinutes, Window: 5 * time.Minute}
}

// CheckLimit bounds the links and codes that a network has checked.
func (s *Settings) CheckLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "check", Most: s.ChecksPerFiveMinutes, Window: 5 * time.Minute}
}

// AnonymousLimit bounds the anonymous sign-ins from a network.
func (s *Settings) AnonymousLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "anonymous", Most: s.AnonymousPerHour, Window: time.Hour}
}

// MailLimit bounds the mails of the project.
func (s *Settings) MailLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "mails", Most: s.MailsPerHour, Window: time.Hour}
}

// MailNetworkLimit bounds the mails that a network asks for, to half of the project's, so that a
// stranger does not take all.
func (s *Settings) MailNetworkLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "mails network", Most: (s.MailsPerHour + 1) / 2, Window: time.Hour}
}

// MailIntervalLimit bounds the mails to one address. A window of zero is no limit.
func (s *Settings) MailIntervalLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "mail", Most: 1, Window: time.Duration(s.MailIntervalSeconds) * time.Second}
}

// ProjectLimit bounds the messages of the project.
func (s SMS) ProjectLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "sms project", Most: s.PerHour, Window: time.Hour}
}

// NetworkLimit bounds the messages that a network asks for. Messages to expensive numbers are fraud
// by which an attacker earns, so each network has few.
func (s SMS) NetworkLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "sms network", Most: s.PerNetworkAndHour, Window: time.Hour}
}

// IntervalLimit bounds the messages to one number in a short time.
func (s SMS) IntervalLimit() ratelimit.Limit {
	return ratelimit.Limit{Name: "sms", Most: 1, Window: time.Duration(s.IntervalSeconds) * time.Second}
}
