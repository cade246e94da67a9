package rules

import (
	"encoding/json"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/webauthn"
	"github.com/socle-dev/socle/internal/weburl"
)

// Settings are the rules of a project for its end users. A project without settings of its own has
// [Default].
type Settings struct {
	SignUp                     bool                `json:"signUp" doc:"People may create their own accounts."`
	AnonymousSignIn            bool                `json:"anonymousSignIn" doc:"People may sign in without credentials."`
	ConfirmEmail               bool                `json:"confirmEmail" doc:"A new address must be confirmed by a mail before the first log-in."`
	SiteURL                    string              `json:"siteUrl" doc:"Address of the application, where links in mails lead unless the request names another one."`
	RedirectURLs               []string            `json:"redirectUrls" doc:"Other addresses where links may lead. * stands for characters except . and /, ** for any; a wildcard in the host stands for labels of the host only."`
	AccessTokenSeconds         int                 `json:"accessTokenSeconds" doc:"Lifetime of access tokens."`
	SessionSeconds             int                 `json:"sessionSeconds" doc:"Time after which a session ends. 0: never."`
	SessionInactivitySeconds   int                 `json:"sessionInactivitySeconds" doc:"Time without a refresh after which a session ends. 0: never."`
	PasswordMinLength          int                 `json:"passwordMinLength" doc:"Characters of a new password."`
	CodeSeconds                int                 `json:"codeSeconds" doc:"Lifetime of links and codes in mails and text messages."`
	MailIntervalSeconds        int                 `json:"mailIntervalSeconds" doc:"Least time between two mails to one address."`
	MailsPerHour               int                 `json:"mailsPerHour" doc:"Mails of the project in an hour. One network asks for at most half of them."`
	SignInsPerFiveMinutes      int                 `json:"signInsPerFiveMinutes" doc:"Sign-ups and log-ins from one network in five minutes."`
	ChecksPerFiveMinutes       int                 `json:"checksPerFiveMinutes" doc:"Links and codes checked from one network in five minutes."`
	AnonymousPerHour           int                 `json:"anonymousPerHour" doc:"Anonymous sign-ins from one network in an hour."`
	Mails                      map[string]MailText `json:"mails" doc:"Texts of mails that differ from the defaults: confirmation, invite, magic_link, recovery, email_change, reauthentication. A kind with a language, such as recovery.de, is for users whose metadata have the language. Variables: {{ .ConfirmationURL }}, {{ .Token }}, {{ .TokenHash }}, {{ .SiteURL }}, {{ .RedirectTo }}, {{ .Email }}, {{ .NewEmail }} and members of the metadata, such as {{ .Data.name }}."`
	SMTP                       SMTP                `json:"smtp" doc:"Mail server of the project. Its password is the secret smtp."`
	PasswordRequiredCharacters []string            `json:"passwordRequiredCharacters" doc:"Sets of which a new password has a character each: lower, upper, letter, digit, symbol."`
	LeakedPasswordCheck        bool                `json:"leakedPasswordCheck" doc:"New passwords must not be known from leaks."`
	Captcha                    Captcha             `json:"captcha" doc:"Check that a person signs up or in. Its secret has the name captcha."`
	Hooks                      Hooks               `json:"hooks" doc:"Functions of the project by hook, pg-functions://postgres/schema/function, or https URLs whose requests are signed by the secret hooks. and the name of the hook: custom_access_token, before_user_created, after_user_created, password_verification_attempt, mfa_verification_attempt, send_email."`
	Providers                  map[string]Provider `json:"providers" doc:"Identity providers by name: google, apple, azure, github, gitlab, discord, facebook, linkedin_oidc, slack_oidc, keycloak, or custom: and a name for any other of OpenID Connect."`
	SMS                        SMS                 `json:"sms" doc:"Phone numbers and text messages."`
	WebAuthn                   WebAuthn            `json:"webauthn" doc:"Passkeys, and authenticators as second factors."`
	OAuthServer                OAuthServer         `json:"oauthServer" doc:"The project's own OAuth 2.1 server, by which other applications ask its users for access."`
}

// Default returns the settings of a new project.
func Default() Settings {
	return Settings{SignUp: true, ConfirmEmail: true, SiteURL: "http://localhost:3000", RedirectURLs: []string{},
		AccessTokenSeconds: 3600, PasswordMinLength: 8, CodeSeconds: 3600, MailIntervalSeconds: 60, MailsPerHour: 100,
		SignInsPerFiveMinutes: 30, ChecksPerFiveMinutes: 30, AnonymousPerHour: 30, Mails: map[string]MailText{},
		Providers: map[string]Provider{}, Hooks: Hooks{}, PasswordRequiredCharacters: []string{},
		SMS: SMS{}.withDefaults()}
}

// Parse returns the settings of their stored form: the members that differ from the defaults, or
// nothing.
func Parse(stored json.RawMessage) (Settings, error) {
	s := Default()
	if len(stored) == 0 {
		return s, nil
	}

	err := json.Unmarshal(stored, &s)
	return s, err
}

// Bounds of settings.
const (
	maxRedirectURLs = 100

	minSessionSeconds = 300
	maxSessionSeconds = 10 * 365 * 86_400
)

func (s *Settings) validate() error {
	err := fault.Join(s.validateNumbers(), s.validateSite(), validateMails(s.Mails),
		validateProviders(s.Providers))
	if err == nil { // the relying party needs a valid site
		err = s.WebAuthn.validate(s.SiteURL)
	}

	return fault.Join(err, s.OAuthServer.validate(s.Captcha.Enabled), s.SMS.validate(), s.Hooks.validate(),
		validateCharacters(s.PasswordRequiredCharacters))
}

func (s *Settings) validateNumbers() error {
	return fault.Join(
		outOfRange("access_token_seconds", s.AccessTokenSeconds, 120, 604_800),
		outOfRange("password_min_length", s.PasswordMinLength, 6, 128),
		outOfRange("code_seconds", s.CodeSeconds, 60, 86_400),
		outOfRange("mail_interval_seconds", s.MailIntervalSeconds, 0, 86_400),
		outOfRange("mails_per_hour", s.MailsPerHour, 0, 100_000),
		outOfRange("sign_ins_per_five_minutes", s.SignInsPerFiveMinutes, 1, 100_000),
		outOfRange("checks_per_five_minutes", s.ChecksPerFiveMinutes, 1, 100_000),
		outOfRange("anonymous_per_hour", s.AnonymousPerHour, 0, 100_000),
		validateSessionEnd("session_seconds", s.SessionSeconds),
		validateSessionEnd("session_inactivity_seconds", s.SessionInactivitySeconds),
	)
}

func validateSessionEnd(field string, seconds int) error {
	if seconds == 0 || (seconds >= minSessionSeconds && seconds <= maxSessionSeconds) {
		return nil
	}
	return refuse(field, "out_of_range", "must be 0, or 300 or more")
}

// validateSite checks the addresses of the application.
func (s *Settings) validateSite() error {
	var errs []error
	if _, err := weburl.ParseSite(s.SiteURL); err != nil || len(s.SiteURL) > maxURL {
		errs = append(errs, refuse("site_url", "invalid_format",
			"must be an http or https URL of at most %d bytes, without user", maxURL))
	}

	errs = append(errs, tooMany("redirect_urls", len(s.RedirectURLs), maxRedirectURLs))
	for i, pattern := range s.RedirectURLs {
		if _, err := weburl.ParsePattern(pattern); err != nil || len(pattern) > maxURL {
			errs = append(errs, refuse("redirect_urls", "invalid_format",
				"must be URLs of at most %d bytes, with * and ** as wildcards: item %d is none", maxURL, i))
			break
		}
	}

	return fault.Join(errs...)
}

// fillAbsent gives absent members their defaults: lists and maps are never null.
func (s *Settings) fillAbsent() {
	s.SMS = s.SMS.withDefaults()
	if s.Hooks == nil {
		s.Hooks = Hooks{}
	}
	if s.Providers == nil {
		s.Providers = map[string]Provider{}
	}
	if s.Mails == nil {
		s.Mails = map[string]MailText{}
	}
	if s.RedirectURLs == nil {
		s.RedirectURLs = []string{}
	}
	if s.PasswordRequiredCharacters == nil {
		s.PasswordRequiredCharacters = []string{}
	}
}

// CheckPassword fails with Invalid for a password that is too long to hash, and with
// [WeakPassword] for one that breaks the settings. The policy of platform accounts does not apply.
func (s *Settings) CheckPassword(secret string) error {
	return checkPassword(secret, s.PasswordMinLength, s.PasswordRequiredCharacters)
}

// MailText returns the text of a kind of mail for a user with a language, such as de-AT.
func (s *Settings) MailText(kind, language string) MailText {
	return findMailText(s.Mails, kind, language)
}

// RelyingParty returns the application that credentials are for.
func (s *Settings) RelyingParty() webauthn.RelyingParty { return s.WebAuthn.RelyingParty(s.SiteURL) }
