package enduser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/weburl"
)

// Settings are the rules of a project for its end users. A project without settings of its own has
// [DefaultSettings].
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

// MailText is the text of a kind of mail. {{ .ConfirmationURL }} and other variables stand for
// values.
type MailText struct {
	Subject string `json:"subject" required:"false" maxLength:"200"`
	HTML    string `json:"html" required:"false" maxLength:"20000"`
	Text    string `json:"text" required:"false" maxLength:"20000"`
}

// DefaultSettings returns the settings of a new project.
func DefaultSettings() Settings {
	return Settings{SignUp: true, ConfirmEmail: true, SiteURL: "http://localhost:3000", RedirectURLs: []string{},
		AccessTokenSeconds: 3600, PasswordMinLength: 8, CodeSeconds: 3600, MailIntervalSeconds: 60, MailsPerHour: 100,
		SignInsPerFiveMinutes: 30, ChecksPerFiveMinutes: 30, AnonymousPerHour: 30, Mails: map[string]MailText{},
		Providers: map[string]Provider{}, Hooks: Hooks{}, PasswordRequiredCharacters: []string{},
		SMS: SMS{}.withDefaults()}
}

// ProjectConfig is the configuration of a project's end users.
type ProjectConfig struct {
	Settings
	Secrets       Secrets
	KeyGeneration int
}

// StoredConfig is a [ProjectConfig] as the platform's database has it.
type StoredConfig struct {
	Settings   json.RawMessage // members that differ from the defaults; empty: none
	Secrets    []byte          // sealed, see [Service.ParseConfig]; empty: none
	Generation int             // of the signing key; 0: the first
}

// ParseConfig returns the configuration of a project from its stored form. It fails if the secrets
// were sealed by another install.
func (s *Service) ParseConfig(project uuid.UUID, stored StoredConfig) (ProjectConfig, error) {
	c := ProjectConfig{Settings: DefaultSettings(), KeyGeneration: max(stored.Generation, 1)}
	if len(stored.Settings) > 0 {
		if err := json.Unmarshal(stored.Settings, &c.Settings); err != nil {
			return c, err
		}
	}

	var err error
	c.Secrets, err = openSecrets(s.Projects, project, stored.Secrets)

	return c, err
}

// LoadConfig returns the configuration of an active project's end users. It fails with NotFound for
// another one.
func (s *Service) LoadConfig(ctx context.Context, project uuid.UUID) (ProjectConfig, error) {
	stored, err := pg.One[StoredConfig](ctx, s.Store.DB().Querier(), `
		select coalesce(a.settings, '{}') as settings, coalesce(a.secrets, '') as secrets,
			coalesce(a.key_generation, 1) as generation
		from platform.projects p left join platform.auth_settings a on a.project_uuid = p.uuid
		where p.uuid = @project and p.status = 'active'`, pgx.StrictNamedArgs{"project": project})
	if err != nil {
		return ProjectConfig{}, err
	}

	return s.ParseConfig(project, stored)
}

// Open returns the directory of an active project. It fails with NotFound for another one.
func (s *Service) Open(ctx context.Context, project uuid.UUID) (*Directory, error) {
	c, err := s.LoadConfig(ctx, project)
	if err != nil {
		return nil, err
	}

	return s.Directory(project, c)
}

// UpdateConfig changes the settings and secrets of a project's end users by change. All servers
// apply them within seconds. It fails with Unprocessable on an invalid member.
func (s *Service) UpdateConfig(
	ctx context.Context, project, user uuid.UUID, change func(*ProjectConfig),
) (ProjectConfig, error) {
	return pg.InTxValue(ctx, s.Store.DB().InTx, func(tx *platform.DB) (ProjectConfig, error) {
		if _, err := pg.Exec(ctx, tx.Querier(), `
			insert into platform.auth_settings (project_uuid) values (@project) on conflict do nothing`,
			pgx.StrictNamedArgs{"project": project}); err != nil {
			return ProjectConfig{}, err
		}

		stored, err := pg.One[StoredConfig](ctx, tx.Querier(), `
			select settings, coalesce(secrets, '') as secrets, key_generation as generation
			from platform.auth_settings where project_uuid = @project for update`,
			pgx.StrictNamedArgs{"project": project})
		if err != nil {
			return ProjectConfig{}, err
		}

		c, err := s.ParseConfig(project, stored)
		if err != nil {
			return c, err
		}

		change(&c)
		if err := fault.Join(c.Settings.validate(), c.Secrets.validate(), c.validateCaptcha(),
			c.checkSenderSecret(), c.checkHookSecrets(), s.checkSMTP(c)); err != nil {
			return c, err
		}

		text, err := json.Marshal(c.Settings)
		if err != nil {
			return c, err
		}

		sealed, err := c.Secrets.seal(s.Projects, project)
		if err != nil {
			return c, err
		}

		_, err = pg.Exec(ctx, tx.Querier(), `
			update platform.auth_settings set settings = @settings::jsonb, secrets = @secrets, updated_by = @user,
				updated_at = now()
			where project_uuid = @project`,
			pgx.StrictNamedArgs{"project": project, "settings": string(text), "secrets": sealed, "user": user})
		return c, err
	})
}

// RotateKey replaces the key that signs access tokens. Tokens of the key before it stay valid, and
// those of older keys do not. It returns the number of the new key.
func (s *Service) RotateKey(ctx context.Context, project, user uuid.UUID) (int, error) {
	return pg.InTxValue(ctx, s.Store.DB().InTx, func(tx *platform.DB) (int, error) {
		return pg.Value[int](ctx, tx.Querier(), `
			insert into platform.auth_settings as a (project_uuid, key_generation, updated_by) values (@project, 2, @user)
			on conflict (project_uuid) do update set key_generation = a.key_generation + 1, updated_by = @user, updated_at = now()
			returning key_generation`, pgx.StrictNamedArgs{"project": project, "user": user})
	})
}

// Bounds of settings.
const (
	maxRedirectURLs = 100
	maxMailTexts    = 60
	maxURL          = 500 // bytes
)

func (s *Settings) validate() error {
	var errs []error
	refuse := func(field, code, format string, args ...any) {
		errs = append(errs, fault.OnField(fault.Unprocessable, field, code, format, args...))
	}

	for _, n := range []struct {
		field            string
		value, low, high int
	}{
		{"access_token_seconds", s.AccessTokenSeconds, 120, 604_800},
		{"password_min_length", s.PasswordMinLength, 6, 128},
		{"code_seconds", s.CodeSeconds, 60, 86_400},
		{"mail_interval_seconds", s.MailIntervalSeconds, 0, 86_400},
		{"mails_per_hour", s.MailsPerHour, 0, 100_000},
		{"sign_ins_per_five_minutes", s.SignInsPerFiveMinutes, 1, 100_000},
		{"checks_per_five_minutes", s.ChecksPerFiveMinutes, 1, 100_000},
		{"anonymous_per_hour", s.AnonymousPerHour, 0, 100_000},
	} {
		if n.value < n.low || n.value > n.high {
			refuse(n.field, "out_of_range", "must be %d to %d", n.low, n.high)
		}
	}

	for field, seconds := range map[string]int{
		"session_seconds": s.SessionSeconds, "session_inactivity_seconds": s.SessionInactivitySeconds,
	} {
		if seconds != 0 && (seconds < 300 || seconds > 10*365*86_400) {
			refuse(field, "out_of_range", "must be 0, or 300 or more")
		}
	}

	if _, err := weburl.ParseSite(s.SiteURL); err != nil || len(s.SiteURL) > maxURL {
		refuse("site_url", "invalid_format", "must be an http or https URL of at most %d bytes, without user", maxURL)
	}

	if len(s.RedirectURLs) > maxRedirectURLs {
		refuse("redirect_urls", "too_many", "must have at most %d items", maxRedirectURLs)
	}
	for i, pattern := range s.RedirectURLs {
		if _, err := weburl.ParsePattern(pattern); err != nil || len(pattern) > maxURL {
			refuse("redirect_urls", "invalid_format",
				"must be URLs of at most %d bytes, with * and ** as wildcards: item %d is none", maxURL, i)
			break
		}
	}

	if len(s.Mails) > maxMailTexts {
		refuse("mails", "too_many", "must have at most %d items", maxMailTexts)
	}
	for kind, text := range s.Mails {
		field := "mails." + kind
		name, language, translated := strings.Cut(kind, ".")
		if _, ok := defaultMails[name]; !ok || (translated && !languageTag.MatchString(language)) {
			refuse(field, "unknown", "is no kind of mail")
			continue
		}
		if err := text.check(); err != nil {
			refuse(field, "invalid_format", "%s", err)
		}
	}

	if len(s.Providers) > maxProviders {
		refuse("providers", "too_many", "must have at most %d items", maxProviders)
	}
	for name, p := range s.Providers {
		if err := p.check(name); err != nil {
			refuse("providers."+name, "invalid_format", "%s", err)
		}
	}

	if err := s.checkWebAuthn(); err != nil && len(errs) == 0 { // which needs a valid site
		refuse("webauthn", "invalid_format", "%s", err)
	}
	if path := s.OAuthServer.AuthorizationPath; path != "" && !isPath(path) {
		refuse("oauth_server.authorization_path", "invalid_format", "must be a path, such as /oauth/consent")
	}
	if s.OAuthServer.Enabled && s.OAuthServer.AuthorizationPath == "" && s.Captcha.Enabled {
		refuse("oauth_server.authorization_path", "required", "is necessary with a captcha, which this server's page has not")
	}
	if err := s.SMS.check(); err != nil {
		refuse("sms", "invalid_format", "%s", err)
	}

	errs = append(errs, s.Hooks.validate(), s.validatePasswords())

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

	return fault.Join(errs...)
}

func (m MailText) check() error {
	if m.Subject == "" || (m.HTML == "" && m.Text == "") {
		return fmt.Errorf("needs a subject, and html or text")
	}

	for _, text := range []string{m.Subject, m.HTML, m.Text} {
		if name := unknownVariable(text); name != "" {
			return fmt.Errorf("has an unknown variable: %s; known are {{ .%s }}", name,
				strings.Join(variableNames, " }}, {{ ."))
		}
	}

	return checkHTML(m.HTML)
}
