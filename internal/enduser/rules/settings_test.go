package rules

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/fault"
)

// faultsOf returns the fields and codes of a failure.
func faultsOf(err error) string {
	if err == nil {
		return ""
	}

	var all []string
	for _, f := range fault.Of(err).Fields {
		all = append(all, f.Name+" "+f.Code)
	}

	return strings.Join(all, ", ")
}

// withSecret is a change of the settings with secrets.
func withSecret(name, text string, change func(*Config)) func(*Config) {
	return func(c *Config) { c.Secrets[name] = text; change(c) }
}

// TestValidate checks each rule of the settings on both sides of it.
func TestValidate(t *testing.T) {
	t.Parallel()

	const webhook = "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	long := strings.Repeat("x", maxURL)
	text := MailText{Subject: "x", Text: "x"}
	smtp := func(url string) func(*Config) {
		return func(c *Config) { c.SMTP = SMTP{URL: url, From: "a@example.com"} }
	}
	for name, tt := range map[string]struct {
		change func(*Config)
		want   string // fields and codes
	}{
		"default": {func(*Config) {}, ""},

		"short tokens":       {func(c *Config) { c.AccessTokenSeconds = 119 }, "access_token_seconds out_of_range"},
		"shortest tokens":    {func(c *Config) { c.AccessTokenSeconds = 120 }, ""},
		"long tokens":        {func(c *Config) { c.AccessTokenSeconds = 604_801 }, "access_token_seconds out_of_range"},
		"short passwords":    {func(c *Config) { c.PasswordMinLength = 5 }, "password_min_length out_of_range"},
		"short codes":        {func(c *Config) { c.CodeSeconds = 59 }, "code_seconds out_of_range"},
		"negative interval":  {func(c *Config) { c.MailIntervalSeconds = -1 }, "mail_interval_seconds out_of_range"},
		"no mails":           {func(c *Config) { c.MailsPerHour = 0 }, ""},
		"no sign-ins":        {func(c *Config) { c.SignInsPerFiveMinutes = 0 }, "sign_ins_per_five_minutes out_of_range"},
		"no checks":          {func(c *Config) { c.ChecksPerFiveMinutes = 0 }, "checks_per_five_minutes out_of_range"},
		"negative anonymous": {func(c *Config) { c.AnonymousPerHour = -1 }, "anonymous_per_hour out_of_range"},
		"short sessions":     {func(c *Config) { c.SessionSeconds = 299 }, "session_seconds out_of_range"},
		"endless sessions":   {func(c *Config) { c.SessionSeconds = 0 }, ""},
		"short inactivity": {func(c *Config) { c.SessionInactivitySeconds = 1 },
			"session_inactivity_seconds out_of_range"},
		"two numbers": {func(c *Config) { c.CodeSeconds, c.MailsPerHour = 0, -1 },
			"code_seconds out_of_range, mails_per_hour out_of_range"},
		"site without host": {func(c *Config) { c.SiteURL = "/" }, "site_url invalid_format"},
		"site of an app":    {func(c *Config) { c.SiteURL = "myapp://x" }, "site_url invalid_format"},
		"long site":         {func(c *Config) { c.SiteURL = "https://example.com/" + long }, "site_url invalid_format"},
		"patterns":          {func(c *Config) { c.RedirectURLs = []string{"https://*.example.com/**", "myapp://**"} }, ""},
		"no pattern": {func(c *Config) { c.RedirectURLs = []string{"https://x/", "x"} },
			"redirect_urls invalid_format"},
		"many patterns": {func(c *Config) { c.RedirectURLs = make([]string, 101) },
			"redirect_urls too_many, redirect_urls invalid_format"},
		"character set": {func(c *Config) { c.PasswordRequiredCharacters = []string{"lower", "emoji"} },
			"password_required_characters unknown"},
		"mail":         {func(c *Config) { c.Mails = map[string]MailText{"recovery": text, "recovery.pt-br": text} }, ""},
		"unknown mail": {func(c *Config) { c.Mails = map[string]MailText{"other": text} }, "mails.other unknown"},
		"language of a mail": {func(c *Config) { c.Mails = map[string]MailText{"recovery.de!": text} },
			"mails.recovery.de! unknown"},
		"mail without a text": {func(c *Config) { c.Mails = map[string]MailText{"invite": {Subject: "x"}} },
			"mails.invite invalid_format"},
		"mail with a variable": {func(c *Config) {
			c.Mails = map[string]MailText{"invite": {Subject: "x", Text: "{{ .X }}"}}
		},
			"mails.invite invalid_format"},
		"unknown provider": {func(c *Config) { c.Providers = map[string]Provider{"x": {}} },
			"providers.x invalid_format"},
		"provider without id": {func(c *Config) { c.Providers = map[string]Provider{"github": {Enabled: true}} },
			"providers.github invalid_format"},
		"provider without URL": {func(c *Config) {
			c.Providers = map[string]Provider{"keycloak": {Enabled: true, ClientID: "x"}}
		},
			"providers.keycloak invalid_format"},
		"provider that is off": {func(c *Config) { c.Providers = map[string]Provider{"keycloak": {}} }, ""},

		"captcha": {withSecret(SecretCaptcha, "x", func(c *Config) {
			c.Captcha = Captcha{Enabled: true, Provider: "turnstile"}
		}),
			""},
		"captcha without secret": {func(c *Config) { c.Captcha = Captcha{Enabled: true, Provider: "turnstile"} },
			"secrets.captcha required"},
		"captcha that is off": {func(c *Config) { c.Captcha = Captcha{Provider: "hcaptcha"} }, ""},
		"unknown captcha": {func(c *Config) { c.Captcha = Captcha{Enabled: true, Provider: "x"} },
			"captcha.provider unknown"},

		"hook": {func(c *Config) { c.Hooks = Hooks{HookMail: "pg-functions://postgres/public/f"} }, ""},
		"unknown hook": {func(c *Config) { c.Hooks = Hooks{"x": "pg-functions://postgres/public/f"} },
			"hooks.x unknown"},
		"bad hook": {func(c *Config) { c.Hooks = Hooks{HookMail: "x"} }, "hooks.send_email invalid_format"},
		"endpoint": {withSecret("hooks.send_email", webhook, func(c *Config) {
			c.Hooks = Hooks{HookMail: "https://example.com/hook"}
		}), ""},
		"endpoint without secret": {func(c *Config) { c.Hooks = Hooks{HookMail: "https://example.com/hook"} },
			"secrets.hooks.send_email required"},
		"endpoint with a bad secret": {withSecret("hooks.send_email", "x", func(c *Config) {
			c.Hooks = Hooks{HookMail: "https://example.com/hook"}
		}), "secrets.hooks.send_email invalid_format"},

		"SMS hook without secret": {func(c *Config) {
			c.SMS = SMS{Sender: SenderHook, HookURL: "https://example.com/"}
		},
			"secrets.sms.hook required"},
		"Twilio without secret": {func(c *Config) {
			c.SMS = SMS{Sender: SenderTwilio, TwilioAccountSID: "A", TwilioFrom: "1"}
		},
			"secrets.sms.twilio required"},

		"OAuth server": {func(c *Config) { c.OAuthServer.Enabled = true }, ""},
		"path of the OAuth server": {func(c *Config) { c.OAuthServer.AuthorizationPath = "/x?y" },
			"oauth_server.authorization_path invalid_format"},
		"OAuth server and captcha": {withSecret(SecretCaptcha, "x", func(c *Config) {
			c.OAuthServer.Enabled, c.Captcha = true, Captcha{Enabled: true, Provider: "turnstile"}
		}), "oauth_server.authorization_path required"},

		"mail server":               {withSecret(SecretSMTP, "x", smtp("smtps://user@smtp.example.com:465")), ""},
		"mail server by HTTPS":      {smtp("https://smtp.example.com"), "smtp invalid_format"},
		"mail server without host":  {smtp("smtp://"), "smtp invalid_format"},
		"mail server with password": {smtp("smtps://user:password@smtp.example.com"), "smtp invalid_format"},
		"mail server without it":    {smtp("smtps://user@smtp.example.com"), "smtp invalid_format"},
		"mail server with a path":   {smtp("smtps://smtp.example.com/path"), "smtp invalid_format"},
		"mail server and sender": {func(c *Config) { c.SMTP = SMTP{URL: "smtps://smtp.example.com", From: "nobody"} },
			"smtp invalid_format"},
		"mail server, no sender": {func(c *Config) { c.SMTP = SMTP{URL: "smtps://smtp.example.com"} },
			"smtp invalid_format"},
	} {
		c := Config{Settings: Default(), Secrets: Secrets{}}
		tt.change(&c)
		if got := faultsOf(c.Validate()); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestAbsentMembers: no member is null, and limits have their defaults.
func TestAbsentMembers(t *testing.T) {
	t.Parallel()

	c := Config{Settings: Default(), Secrets: Secrets{}}
	c.Hooks, c.Providers, c.Mails, c.RedirectURLs, c.PasswordRequiredCharacters, c.SMS = nil, nil, nil, nil, nil, SMS{}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c.Settings, Default()) {
		t.Errorf("got %+v, want the defaults", c.Settings)
	}

	text, err := json.Marshal(c.Settings)
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("got %s, %v, want no null", text, err)
	}
}

// TestParse: stored members replace the defaults.
func TestParse(t *testing.T) {
	t.Parallel()

	for stored, want := range map[string]int{"": 8, "{}": 8, `{"passwordMinLength":10}`: 10} {
		s, err := Parse(json.RawMessage(stored))
		if err != nil || s.PasswordMinLength != want || s.SiteURL != Default().SiteURL || s.SMS.PerHour != 30 {
			t.Errorf("%s: got %+v, %v", stored, s, err)
		}
	}
	if _, err := Parse(json.RawMessage(`[]`)); err == nil {
		t.Error("a list is no settings")
	}
}

// randomText returns a text of characters that JSON, SQL or mail could read otherwise.
func randomText(r *rand.Rand) string {
	special := []rune("\"\\\n\r\t\x01\x1f\x7f'$%{}<>&,;:|/\u2028\u2029\ufeff\uffff\ufffd\U0010ffff𝄞é İ \\x00\\u0041\\101")
	var b strings.Builder
	for range 1 + r.IntN(12) {
		c := special[r.IntN(len(special))]
		if r.IntN(3) == 0 {
			c = rune(1 + r.IntN(unicode.MaxRune))
		}
		if utf8.ValidRune(c) {
			b.WriteRune(c)
		}
	}

	return "x" + b.String()
}

// TestSettingsOfAnyText: settings that are accepted are read again as they were written.
func TestSettingsOfAnyText(t *testing.T) {
	t.Parallel()

	r, accepted := rand.New(rand.NewPCG(3, 4)), 0
	for range 500 {
		c, text := Config{Settings: Default(), Secrets: Secrets{}}, randomText(r)
		c.Mails["recovery"] = MailText{Subject: text, Text: text, HTML: text}
		c.Mails["invite.de"] = MailText{Subject: "x", Text: text}
		c.Providers["github"] = Provider{ClientID: text, OtherClientIDs: []string{text}}
		c.SMS.Text = text + "{{ .Token }}"
		c.WebAuthn.RPName = text
		if c.Validate() != nil {
			continue
		}

		accepted++
		stored, err := json.Marshal(c.Settings)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := Parse(stored); err != nil || !reflect.DeepEqual(read, c.Settings) {
			t.Errorf("read %+v (%v)\nwrote %+v", read, err, c.Settings)
		}
		if m := c.SMS.Message("123456", ""); !strings.Contains(m, "123456") {
			t.Errorf("got the message %q", m)
		}

		key := make([]byte, 32)
		sealed, err := Secrets{"smtp": text}.Seal(key)
		if err != nil {
			t.Fatal(err)
		}
		if secrets, err := OpenSecrets(key, sealed); err != nil || secrets[SecretSMTP] != text {
			t.Errorf("read the secret %q (%v), wrote %q", secrets[SecretSMTP], err, text)
		}
	}
	if accepted < 250 {
		t.Errorf("got %d accepted texts of 500, want enough to prove anything", accepted)
	}
}

// TestLimits: half of the mails of a project are for one network, and no limit is none.
func TestLimits(t *testing.T) {
	t.Parallel()

	s := Settings{MailsPerHour: 7}
	if got := s.MailNetworkLimit().Most; got != 4 {
		t.Errorf("got %d mails of a network, want 4 of 7", got)
	}
	if got := (&Settings{}).MailIntervalLimit().Window; got != 0 {
		t.Errorf("got the interval %v, want none", got)
	}

	names := map[string]bool{}
	for _, l := range []string{s.SignInLimit().Name, s.CheckLimit().Name, s.AnonymousLimit().Name, s.MailLimit().Name,
		s.MailNetworkLimit().Name, s.MailIntervalLimit().Name, s.SMS.ProjectLimit().Name, s.SMS.NetworkLimit().Name,
		s.SMS.IntervalLimit().Name, NumberLimit.Name, ChangeLimit.Name, FactorLimit.Name, PasswordLimit.Network.Name,
		PasswordLimit.UnknownNetworks.Name, CodeLimit.Network.Name, CodeLimit.UnknownNetworks.Name} {
		if names[l] {
			t.Errorf("two limits share the counts of %q", l)
		}
		names[l] = true
	}
}
