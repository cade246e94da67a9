package repository

import (
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	day    = 86_400 // seconds
	decade = 10 * 365 * day
	many   = 100_000
)

// readAuth reads the end-user settings.
func (r *settingsReader) readAuth() {
	auth := r.d.section("auth")
	r.setText(auth, "site_url", "site_url")
	if urls, ok := auth.texts("additional_redirect_urls"); ok {
		r.set(auth.key("additional_redirect_urls"), urls, "redirect_urls")
	}

	r.setNumber(auth, "jwt_expiry", 120, 7*day, "access_token_seconds")
	r.setFlag(auth, "enable_signup", "sign_up")
	r.setFlag(auth, "enable_anonymous_sign_ins", "anonymous_sign_in")
	r.setNumber(auth, "minimum_password_length", 6, 128, "password_min_length")
	r.readPasswords(auth)
	r.setSeconds(auth.sub("sessions"), "timebox", 0, decade, "session_seconds")
	r.setSeconds(auth.sub("sessions"), "inactivity_timeout", 0, decade, "session_inactivity_seconds")

	r.readMail(auth.sub("email"))
	r.readPhone(auth.sub("sms"), auth.sub("mfa").sub("phone"))
	r.readRates(auth.sub("rate_limit"))
	r.readHooks(auth.sub("hook"))
	r.readProviders(auth.sub("external"))
	r.readCaptcha(auth.sub("captcha"))
	r.readWebAuthn(auth)
	r.readOAuthServer(auth.sub("oauth_server"))
}

// passwordSets are the characters that a new password needs by their name in the configuration.
var passwordSets = map[string][]string{
	"":                                   {},
	"letters_digits":                     {"letter", "digit"},
	"lower_upper_letters_digits":         {"lower", "upper", "digit"},
	"lower_upper_letters_digits_symbols": {"lower", "upper", "digit", "symbol"},
}

func (r *settingsReader) readPasswords(auth section) {
	name, ok := auth.text("password_requirements")
	if !ok {
		return
	}

	sets, ok := passwordSets[name]
	if !ok {
		r.d.problem(auth.key("password_requirements"), "must be letters_digits, lower_upper_letters_digits, "+
			"lower_upper_letters_digits_symbols or empty")
		return
	}

	r.set(auth.key("password_requirements"), sets, "password_required_characters")
}

// readMail reads the mail sign-in settings.
func (r *settingsReader) readMail(email section) {
	r.setFlag(email, "enable_confirmations", "confirm_email")
	r.setSeconds(email, "max_frequency", 0, day, "mail_interval_seconds")
	r.setNumber(email, "otp_expiry", 60, day, "code_seconds")
	r.readSMTP(email.sub("smtp"))
	r.readTemplates(email.sub("template"))
}

// readSMTP reads the mail server. The port 465 has TLS from the start.
func (r *settingsReader) readSMTP(s section) {
	if !s.exists() {
		return
	}
	if enabled, ok := s.flag("enabled"); ok && !enabled {
		r.set(s.key("enabled"), nil, "smtp")
		return
	}

	host, hasHost := s.text("host")
	port, hasPort := s.number("port", 1, 65_535)
	from, hasFrom := s.text("admin_email")
	if !hasHost || !hasPort || !hasFrom {
		r.d.problem(s.path, "needs host, port and admin_email")
		return
	}

	u := url.URL{Scheme: "smtp", Host: host + ":" + strconv.FormatInt(port, 10)}
	if port == 465 {
		u.Scheme = "smtps"
	}
	if user, ok := s.text("user"); ok && user != "" {
		u.User = url.User(user)
	}

	sender := from
	if name, ok := s.text("sender_name"); ok && name != "" {
		sender = (&mail.Address{Name: name, Address: from}).String()
	}

	r.set(s.path, map[string]any{"url": u.String(), "from": sender}, "smtp")
	r.setSecret(s, "pass", "smtp")
}

// splitSender returns the name, or "", and the address in a sender.
func splitSender(v any) (name, address string) {
	text, _ := v.(string)
	a, err := mail.ParseAddress(text)
	if err != nil {
		return "", text
	}

	return a.Name, a.Address
}

// readRates reads the request limits. The mail limit is for the project's own mail server, as in
// Supabase.
func (r *settingsReader) readRates(s section) {
	if smtp := r.d.section("auth", "email", "smtp"); smtp.exists() && (smtp.values["enabled"] != false) {
		r.setNumber(s, "email_sent", 0, many, "mails_per_hour")
	}

	r.setNumber(s, "sign_in_sign_ups", 1, many, "sign_ins_per_five_minutes")
	r.setNumber(s, "token_verifications", 1, many, "checks_per_five_minutes")
	r.setNumber(s, "anonymous_users", 0, many, "anonymous_per_hour")
}

// hookNames are the hooks that a project can have.
var hookNames = []string{"custom_access_token", "before_user_created", "after_user_created",
	"password_verification_attempt", "mfa_verification_attempt", "send_email"}

// readHooks reads the hooks. That of text messages is a sender of them.
func (r *settingsReader) readHooks(hooks section) {
	for _, name := range hooks.names() {
		s := hooks.sub(name)
		switch {
		case name == "send_sms":
			continue
		case !slices.Contains(hookNames, name):
			if s.is("enabled") {
				r.d.note(s.path, "is not available")
			}
		case s.is("enabled"):
			if uri, ok := r.readHook(s); ok {
				r.set(s.path, uri, "hooks", name)
				r.setSecret(s, "secrets", "hooks."+name)
			}
		default:
			r.set(s.path, nil, "hooks", name)
		}
	}
}

// readHook returns a hook's address. It notes one that a project can't call.
func (r *settingsReader) readHook(s section) (string, bool) {
	uri, ok := s.text("uri")
	switch {
	case !ok:
		r.d.problem(s.path, "needs uri")
		return "", false
	case strings.HasPrefix(uri, "pg-functions://"):
		return uri, true
	case strings.HasPrefix(uri, functionScheme):
		return uri, true
	case localFunction(uri) != "":
		return functionScheme + localFunction(uri), true
	case !strings.HasPrefix(uri, "https://"):
		r.d.note(s.key("uri"), "is not used: a hook is a function in SQL, pg-functions://postgres/SCHEMA/NAME, "+
			"an edge function, functions://NAME, or has an https URL")
		return "", false
	}

	if secrets := s.values["secrets"]; secrets == nil || secrets == "" {
		r.d.problem(s.path, "needs secrets, by which its requests are signed")
	}

	return uri, true
}

// functionScheme begins the address of an edge function of the project, whose requests need no
// secret.
const functionScheme = "functions://"

// localHosts are the names by which Supabase's local containers reach edge functions.
var localHosts = []string{"127.0.0.1", "api.supabase.internal", "host.docker.internal", "kong", "localhost"}

// localFunction returns the name in the address of an edge function on the developer's machine, and
// the path after it. It returns "" for any other address.
func localFunction(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || !slices.Contains(localHosts, u.Hostname()) {
		return ""
	}

	name, ok := strings.CutPrefix(u.Path, "/functions/v1/")
	if !ok || u.RawQuery != "" {
		return ""
	}

	return strings.TrimSuffix(name, "/")
}

// providerNames are the identity providers that a project can have.
var providerNames = []string{"apple", "azure", "discord", "facebook", "github", "gitlab", "google", "keycloak",
	"linkedin_oidc", "slack_oidc"}

// readProviders reads the identity providers.
func (r *settingsReader) readProviders(external section) {
	for _, name := range external.names() {
		s := external.sub(name)
		isKnown := slices.Contains(providerNames, name)
		switch {
		case !s.is("enabled"):
			if isKnown {
				r.set(s.path, false, "providers", name, "enabled")
			}
		case !isKnown:
			r.d.note(s.path, "is not available; providers are %s, and any of OpenID Connect as a custom one: "+
				"socle auth-settings update --providers", strings.Join(providerNames, ", "))
		default:
			r.readProvider(s, name)
		}
	}
}

func (r *settingsReader) readProvider(s section, name string) {
	ids, _ := s.text("client_id")
	all := strings.FieldsFunc(ids, func(c rune) bool { return c == ',' || c == ' ' })
	if len(all) == 0 {
		if r.d.failed(s.key("client_id")) {
			return
		}
		r.d.problem(s.path, "needs client_id")
		return
	}

	p := map[string]any{"enabled": true, "client_id": all[0]}
	if len(all) > 1 {
		p["other_client_ids"] = all[1:]
	}

	if address, ok := s.text("url"); ok && address != "" {
		if name == "azure" && !strings.HasSuffix(strings.TrimSuffix(address, "/"), "/v2.0") {
			address = strings.TrimSuffix(address, "/") + "/v2.0" // a tenant's issuer
		}
		p["url"] = address
	} else if name == "keycloak" && !r.d.failed(s.key("url")) {
		r.d.problem(s.path, "needs url")
	}

	if s.is("skip_nonce_check") {
		p["skip_nonce"] = true
	}
	if address, ok := s.text("redirect_uri"); ok && address != "" {
		r.d.note(s.key("redirect_uri"), "is not used: the provider sends people to the project's own /auth/v1/callback")
	}

	r.set(s.path, p, "providers", name)
	r.setSecret(s, "secret", "providers."+name)
}

// failed reports whether a key has a problem already.
func (d *document) failed(key string) bool {
	return slices.ContainsFunc(d.problems, func(r Remark) bool { return r.Key == key })
}

func (r *settingsReader) readCaptcha(s section) {
	enabled, ok := s.flag("enabled")
	if !ok || !enabled {
		if ok {
			r.set(s.key("enabled"), false, "captcha", "enabled")
		}
		return
	}

	provider, _ := s.text("provider")
	if provider != "hcaptcha" && provider != "turnstile" {
		r.d.problem(s.path, "needs the provider hcaptcha or turnstile")
		return
	}

	r.set(s.path, map[string]any{"enabled": true, "provider": provider}, "captcha")
	r.setSecret(s, "secret", "captcha")
}

// readWebAuthn reads the settings for passkeys, and for authenticators as second factors.
func (r *settingsReader) readWebAuthn(auth section) {
	r.setFlag(auth.sub("mfa").sub("web_authn"), "enroll_enabled", "webauthn", "factors")
	r.setFlag(auth.sub("passkey"), "enabled", "webauthn", "passkeys")

	party := auth.sub("webauthn")
	r.setText(party, "rp_id", "webauthn", "rp_id")
	r.setText(party, "rp_display_name", "webauthn", "rp_name")
	if origins, ok := party.texts("rp_origins"); ok {
		r.set(party.key("rp_origins"), origins, "webauthn", "origins")
	}
}

func (r *settingsReader) readOAuthServer(s section) {
	enabled, ok := s.flag("enabled")
	if !ok {
		return
	}

	r.set(s.key("enabled"), enabled, "oauth_server", "enabled")
	if enabled {
		r.setText(s, "authorization_url_path", "oauth_server", "authorization_path")
		r.setFlag(s, "allow_dynamic_registration", "oauth_server", "allow_dynamic_registration")
	}
}
