package rules

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/outbound"
)

// SMS are the rules for phone numbers and the sender of text messages. An SMS without limits
// has the default ones, and the zero SMS has phone numbers off.
type SMS struct {
	SignIn      bool `json:"sign_in,omitempty" doc:"People may sign up and sign in with a phone number."`
	Factors     bool `json:"factors,omitempty" doc:"Users may have a phone as a second factor."`
	AutoConfirm bool `json:"auto_confirm,omitempty" doc:"A number needs no code before the first log-in."`

	Sender                    string `json:"sender,omitempty" enum:"mailbox,hook,twilio" doc:"mailbox: the project's mailbox, for development. hook: hook_url. twilio: Twilio, or another service with its interface. Default: mailbox."`
	HookURL                   string `json:"hook_url,omitempty" maxLength:"500" doc:"Receives the user and the code, signed by the secret sms.hook."`
	TwilioAccountSID          string `json:"twilio_account_sid,omitempty" maxLength:"64" doc:"Account of the token in the secret sms.twilio."`
	TwilioFrom                string `json:"twilio_from,omitempty" maxLength:"64" doc:"Number or name of the sender."`
	TwilioMessagingServiceSID string `json:"twilio_messaging_service_sid,omitempty" maxLength:"64" doc:"Instead of twilio_from."`
	TwilioURL                 string `json:"twilio_url,omitempty" maxLength:"500" doc:"Root of the interface. Default: that of Twilio."`

	Text        string            `json:"text,omitempty" maxLength:"500" doc:"Text of a message, with the variables {{ .Token }} and {{ .SiteURL }}."`
	TestNumbers map[string]string `json:"test_numbers,omitempty" doc:"Six-digit codes of numbers that get no message. Anyone who knows one signs in."`

	CallingCodes      []string `json:"calling_codes,omitempty" maxItems:"250" doc:"Beginnings of the numbers that messages may go to, such as 49. None: all."`
	IntervalSeconds   int      `json:"interval_seconds,omitempty" maximum:"86400" minimum:"0" doc:"Least time between two messages to one number. Default: 60."`
	PerNetworkAndHour int      `json:"per_network_and_hour,omitempty" maximum:"5000" minimum:"0" doc:"Messages that one network asks for in an hour. Default: 10."`
	PerHour           int      `json:"per_hour,omitempty" maximum:"5000" minimum:"0" doc:"Messages of the project in an hour. Default: 30."`
}

// Senders of text messages.
const (
	SenderMailbox = "mailbox"
	SenderHook    = "hook"
	SenderTwilio  = "twilio"
)

const (
	maxSMSInterval  = 86_400 // seconds
	maxSMSPerHour   = 5000   // capacity of a project's worker
	maxTestNumbers  = 20
	maxCallingCodes = 250
	maxSMSText      = 500 // bytes
	defaultSMSText  = "Your code is {{ .Token }}"
)

// withDefaults returns the settings with the default limits in the place of absent ones.
func (s SMS) withDefaults() SMS {
	s.IntervalSeconds = cmp.Or(s.IntervalSeconds, 60)
	s.PerNetworkAndHour = cmp.Or(s.PerNetworkAndHour, 10)
	s.PerHour = cmp.Or(s.PerHour, 30)

	return s
}

// SenderName returns the sender of messages, by default the mailbox.
func (s SMS) SenderName() string { return cmp.Or(s.Sender, SenderMailbox) }

// Allows reports whether messages may go to a number.
func (s SMS) Allows(phone string) bool {
	begins := func(code string) bool { return strings.HasPrefix(phone, code) }
	return len(s.CallingCodes) == 0 || slices.ContainsFunc(s.CallingCodes, begins)
}

// Message returns the text of a message with a code.
func (s SMS) Message(code, siteURL string) string {
	values := map[string]string{"Token": code, "SiteURL": siteURL}
	return Fill(cmp.Or(s.Text, defaultSMSText), func(name string) string { return values[name] })
}

var (
	e164        = regexp.MustCompile(`^[1-9][0-9]{1,14}$`)
	sixDigits   = regexp.MustCompile(`^[0-9]{6}$`)
	callingCode = regexp.MustCompile(`^[1-9][0-9]{0,14}$`)
	twilioID    = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)
	smsVariable = regexp.MustCompile(`\{\{\s*\.(Token|SiteURL)\s*\}\}`)
)

// IsPhone reports whether a text is a phone number by E.164 in its stored form, without plus.
func IsPhone(text string) bool { return e164.MatchString(text) }

func (s SMS) validate() error {
	if err := s.check(); err != nil {
		return refuse("sms", "invalid_format", "%s", err)
	}
	return nil
}

// check fails for the first invalid member.
func (s SMS) check() error {
	return cmp.Or(s.checkSender(), s.checkLimits(), s.checkText(), s.checkTestNumbers(), s.checkCallingCodes())
}

func (s SMS) checkSender() error {
	switch s.SenderName() {
	case SenderMailbox:
		return nil
	case SenderHook:
		if err := outbound.CheckAddress(s.HookURL); err != nil || len(s.HookURL) > maxURL {
			return errors.New("hook_url must be functions://name, or an https URL without user, query and fragment")
		}
		return nil
	case SenderTwilio:
		return s.checkTwilio()
	}

	return errors.New("sender must be mailbox, hook or twilio")
}

func (s SMS) checkTwilio() error {
	switch {
	case !twilioID.MatchString(s.TwilioAccountSID):
		return errors.New("twilio_account_sid must be letters and digits")
	case s.TwilioMessagingServiceSID != "" && !twilioID.MatchString(s.TwilioMessagingServiceSID):
		return errors.New("twilio_messaging_service_sid must be letters and digits")
	case s.TwilioMessagingServiceSID == "" && (s.TwilioFrom == "" || len(s.TwilioFrom) > 64):
		return errors.New("twilio_from or twilio_messaging_service_sid is required")
	case s.TwilioURL != "" && (outbound.CheckURL(s.TwilioURL) != nil || len(s.TwilioURL) > maxURL):
		return errors.New("twilio_url must be an https URL without user, query and fragment")
	}

	return nil
}

func (s SMS) checkLimits() error {
	if s.IntervalSeconds < 0 || s.IntervalSeconds > maxSMSInterval {
		return fmt.Errorf("interval_seconds must be 0 to %d", maxSMSInterval)
	}
	for name, n := range map[string]int{"per_hour": s.PerHour, "per_network_and_hour": s.PerNetworkAndHour} {
		if n < 0 || n > maxSMSPerHour {
			return fmt.Errorf("%s must be 0 to %d", name, maxSMSPerHour)
		}
	}

	return nil
}

func (s SMS) checkText() error {
	if len(s.Text) > maxSMSText || strings.Contains(smsVariable.ReplaceAllString(s.Text, ""), "{{") {
		return fmt.Errorf("text must have at most %d bytes, and no variables but {{ .Token }} and {{ .SiteURL }}",
			maxSMSText)
	}
	if s.Text != "" && !strings.Contains(s.Message("123456", ""), "123456") {
		return errors.New("text must contain {{ .Token }}")
	}

	return nil
}

func (s SMS) checkTestNumbers() error {
	if len(s.TestNumbers) > maxTestNumbers {
		return fmt.Errorf("test_numbers must have at most %d items", maxTestNumbers)
	}
	for number, code := range s.TestNumbers {
		if !IsPhone(number) || !sixDigits.MatchString(code) {
			return errors.New("test_numbers must map numbers such as 491701234567 to six digits")
		}
	}

	return nil
}

func (s SMS) checkCallingCodes() error {
	if len(s.CallingCodes) > maxCallingCodes {
		return fmt.Errorf("calling_codes must have at most %d items", maxCallingCodes)
	}
	for _, code := range s.CallingCodes {
		if !callingCode.MatchString(code) {
			return errors.New("calling_codes must be digits, such as 49")
		}
	}

	return nil
}
