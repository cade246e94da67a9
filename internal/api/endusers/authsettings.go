package endusers

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

// registerAuthSettings registers the operations on the rules for end users.
func (s *Server) registerAuthSettings(p *operation.Pipeline) {
	operation.HandleInProject(p, getAuthSettings, s.getAuthSettings, nil)
	operation.HandleInProject(p, updateAuthSettings, s.updateAuthSettings, nil)
	operation.HandleInProject(p, rotateAuthKey, s.rotateAuthKey, nil)
}

var getAuthSettings = operation.Operation{
	ID: "getAuthSettings", Method: "GET",
	Path: "/projects/{projectUUID}/auth-settings", Summary: "Get a project's settings of end users",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

// authSettings are a project's settings with the names of secrets.
type authSettings struct {
	rules.Settings
	SecretNames []string `json:"secretNames" doc:"Secrets that are set. Their values are never shown."`
}

func (s *Server) getAuthSettings(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (authSettings, error) {
	c, err := s.EndUsers.LoadConfig(ctx, p.UUID)
	return authSettings{c.Settings, c.Secrets.Names()}, err
}

var updateAuthSettings = operation.Operation{
	ID: "updateAuthSettings", Method: "PUT",
	Path: "/projects/{projectUUID}/auth-settings", Summary: "Update a project's settings of end users",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes:   "Omitted members stay unchanged. Takes effect within seconds.",
	Example: `{"site_url": "https://app.example.com", "redirect_urls": ["https://*.example.com/**"]}`,
}

type updateAuthSettingsInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		SignUp                     *bool                      `json:"sign_up,omitempty"`
		AnonymousSignIn            *bool                      `json:"anonymous_sign_in,omitempty"`
		ConfirmEmail               *bool                      `json:"confirm_email,omitempty"`
		SiteURL                    *string                    `json:"site_url,omitempty"`
		RedirectURLs               *[]string                  `json:"redirect_urls,omitempty" maxItems:"100"`
		AccessTokenSeconds         *int                       `json:"access_token_seconds,omitempty"`
		SessionSeconds             *int                       `json:"session_seconds,omitempty"`
		SessionInactivitySeconds   *int                       `json:"session_inactivity_seconds,omitempty"`
		PasswordMinLength          *int                       `json:"password_min_length,omitempty"`
		CodeSeconds                *int                       `json:"code_seconds,omitempty"`
		MailIntervalSeconds        *int                       `json:"mail_interval_seconds,omitempty"`
		MailsPerHour               *int                       `json:"mails_per_hour,omitempty"`
		SignInsPerFiveMinutes      *int                       `json:"sign_ins_per_five_minutes,omitempty"`
		ChecksPerFiveMinutes       *int                       `json:"checks_per_five_minutes,omitempty"`
		AnonymousPerHour           *int                       `json:"anonymous_per_hour,omitempty"`
		Mails                      *map[string]rules.MailText `json:"mails,omitempty" doc:"Texts by kind of mail. Replaces all."`
		SMTP                       *rules.SMTP                `json:"smtp,omitempty" doc:"Mail server of the project. Replaces all of it."`
		Providers                  *map[string]rules.Provider `json:"providers,omitempty" doc:"Identity providers by name. Replaces all."`
		PasswordRequiredCharacters *[]string                  `json:"password_required_characters,omitempty" doc:"lower, upper, letter, digit, symbol."`
		LeakedPasswordCheck        *bool                      `json:"leaked_password_check,omitempty"`
		Captcha                    *rules.Captcha             `json:"captcha,omitempty" doc:"Replaces all of it."`
		Hooks                      *rules.Hooks               `json:"hooks,omitempty" doc:"Functions of the project or https URLs by hook. Replaces all."`
		SMS                        *rules.SMS                 `json:"sms,omitempty" doc:"Phone numbers and text messages. Replaces all."`
		WebAuthn                   *rules.WebAuthn            `json:"webauthn,omitempty" doc:"Passkeys, and authenticators as second factors. Replaces all."`
		OAuthServer                *rules.OAuthServer         `json:"oauth_server,omitempty" doc:"OAuth 2.1 server of the project. Replaces all of it."`
		Secrets                    *map[string]string         `json:"secrets,omitempty" doc:"Secrets to set, by name: captcha, smtp, sms.hook, sms.twilio, hooks. and the name of a hook, or providers. and the name of a provider. An empty text removes one. Those of hooks may be several with | between them, to replace one."`
	}
}

func (s *Server) updateAuthSettings(
	ctx context.Context, p *projectdb.Project, in *updateAuthSettingsInput,
) (authSettings, error) {
	b := in.Body
	if operation.IsEmpty(b) {
		return authSettings{}, fault.NothingToChange()
	}

	c, err := s.EndUsers.UpdateConfig(ctx, p.UUID, operation.Caller(ctx).User, func(c *rules.Config) {
		set(&c.SignUp, b.SignUp)
		set(&c.AnonymousSignIn, b.AnonymousSignIn)
		set(&c.ConfirmEmail, b.ConfirmEmail)
		set(&c.SiteURL, b.SiteURL)
		set(&c.RedirectURLs, b.RedirectURLs)
		set(&c.AccessTokenSeconds, b.AccessTokenSeconds)
		set(&c.SessionSeconds, b.SessionSeconds)
		set(&c.SessionInactivitySeconds, b.SessionInactivitySeconds)
		set(&c.PasswordMinLength, b.PasswordMinLength)
		set(&c.CodeSeconds, b.CodeSeconds)
		set(&c.MailIntervalSeconds, b.MailIntervalSeconds)
		set(&c.MailsPerHour, b.MailsPerHour)
		set(&c.SignInsPerFiveMinutes, b.SignInsPerFiveMinutes)
		set(&c.ChecksPerFiveMinutes, b.ChecksPerFiveMinutes)
		set(&c.AnonymousPerHour, b.AnonymousPerHour)
		set(&c.Mails, b.Mails)
		set(&c.SMTP, b.SMTP)
		set(&c.Providers, b.Providers)
		set(&c.PasswordRequiredCharacters, b.PasswordRequiredCharacters)
		set(&c.LeakedPasswordCheck, b.LeakedPasswordCheck)
		set(&c.Captcha, b.Captcha)
		set(&c.Hooks, b.Hooks)
		set(&c.SMS, b.SMS)
		set(&c.WebAuthn, b.WebAuthn)
		set(&c.OAuthServer, b.OAuthServer)
		if b.Secrets != nil {
			c.Secrets.Set(*b.Secrets)
		}
	})

	return authSettings{c.Settings, c.Secrets.Names()}, err
}

// set sets a member that the request names.
func set[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

var rotateAuthKey = operation.Operation{
	ID: "rotateAuthKey", Method: "POST",
	Path: "/projects/{projectUUID}/auth-key/rotate", Summary: "Rotate the key of end users' tokens",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "New access tokens have the new key within seconds. Those of the key before it stay valid to their end, and " +
		"those of older keys do not.",
}

// rotatedKey has a new key's number.
type rotatedKey struct {
	Generation int `json:"generation" doc:"Number of the key, from 1."`
}

func (s *Server) rotateAuthKey(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (rotatedKey, error) {
	n, err := s.EndUsers.RotateKey(ctx, p.UUID, operation.Caller(ctx).User)
	return rotatedKey{n}, err
}
