package repository

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Snapshot is what a project has of what a configuration can say. Settings are as the API answers
// them.
type Snapshot struct {
	Name        string
	Auth, Rest  map[string]any
	SecretNames []string // see [Secret.Name]
	Containers  []Container
	OpenTables  *bool // nil: neither, by the project's own statements

	Functions      map[string]bool           // whether requests need a key or token, by name
	FunctionTables map[string]map[string]any // what the replaced configuration says, see [FunctionTables]
}

// Files are texts by path from a repository's folder.
type Files map[string]string

// Render returns a project's configuration, with its mail texts. Secrets are environment variables.
// [Open] reads the same settings back. The notes are about settings that a configuration can't say.
func Render(s Snapshot) (files Files, notes []string) {
	w := &configWriter{files: Files{}, auth: map[string]any{}, secrets: s.SecretNames}
	for name, value := range s.Auth {
		w.auth[snake(name)] = value
	}

	w.value("project_id", s.Name)
	w.table("api")
	w.value("schemas", s.Rest["schemas"])
	w.value("max_rows", s.Rest["maxRows"])
	if s.OpenTables != nil {
		w.value("auto_expose_new_tables", *s.OpenTables)
	}

	for _, c := range s.Containers {
		w.table("storage", "buckets", c.Name)
		w.value("public", c.IsPublic)
		w.value("file_size_limit", c.MaxSize)
		if len(c.Types) > 0 {
			w.value("allowed_mime_types", c.Types)
		}
	}

	w.writeVault()
	w.writeAuth()
	w.writeMail()
	w.writePhone()
	w.writeHooks()
	w.writeProviders()
	w.writeFunctions(s)
	w.writeRest()

	w.files[ConfigFile] = w.text.String()
	slices.Sort(w.notes)

	return w.files, w.notes
}

// configWriter writes a configuration.
type configWriter struct {
	text    strings.Builder
	auth    map[string]any // end-user settings by request member
	secrets []string
	files   Files
	notes   []string
}

func (w *configWriter) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// table begins a table.
func (w *configWriter) table(path ...string) {
	for i, name := range path {
		path[i] = tomlKey(name)
	}

	fmt.Fprintf(&w.text, "\n[%s]\n", strings.Join(path, "."))
}

// value writes a pair. A value that is absent has none.
func (w *configWriter) value(name string, v any) {
	if v != nil {
		fmt.Fprintf(&w.text, "%s = %s\n", tomlKey(name), tomlValue(v))
	}
}

// secret writes a secret as an environment variable, if the project has it.
func (w *configWriter) secret(name, secret, variable string) {
	if slices.Contains(w.secrets, secret) {
		w.value(name, "env("+variable+")")
	}
}

// notLetters matches what the name of an environment variable can't have.
var notLetters = regexp.MustCompile(`[^A-Z0-9]+`)

// writeVault writes the secrets of the vault.
func (w *configWriter) writeVault() {
	begun := false
	for _, secret := range slices.Sorted(slices.Values(w.secrets)) {
		name, ok := strings.CutPrefix(secret, VaultPrefix)
		if !ok {
			continue
		}
		if !begun {
			w.table("db", "vault")
			begun = true
		}

		w.secret(name, secret, "VAULT_"+notLetters.ReplaceAllString(strings.ToUpper(name), "_"))
	}
}

// writeFunctions writes which functions need no key, beside what the configuration says of them: a
// project knows nothing of their files.
func (w *configWriter) writeFunctions(s Snapshot) {
	tables := map[string]map[string]any{}
	for name, table := range s.FunctionTables {
		tables[name] = maps.Clone(table)
	}
	for name, verify := range s.Functions {
		if tables[name] == nil {
			tables[name] = map[string]any{}
		}
		if _, said := tables[name]["verify_jwt"]; said || !verify {
			tables[name]["verify_jwt"] = verify
		}
	}

	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if len(tables[name]) == 0 {
			continue
		}

		w.table("functions", name)
		for _, key := range slices.Sorted(maps.Keys(tables[name])) {
			w.value(key, tables[name][key])
		}
	}
}

// member returns an object's member, nil for none.
func member(object any, name string) any {
	o, _ := object.(map[string]any)
	return o[name]
}

func isTrue(v any) bool { return v == true }

// tomlKey returns a key, in quotes if it needs them.
func tomlKey(name string) string {
	bare := name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
	if bare {
		return name
	}

	return tomlValue(name)
}

// tomlValue returns a JSON value in TOML, whose texts and lists have the same form.
func tomlValue(v any) string {
	if n, ok := v.(float64); ok && n == math.Trunc(n) {
		return fmt.Sprintf("%.0f", n)
	}

	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a JSON value

	text := strings.TrimSuffix(b.String(), "\n")
	return strings.ReplaceAll(text, "\x7f", `\u007F`)
}

func (w *configWriter) writeAuth() {
	w.table("auth")
	w.value("site_url", w.auth["site_url"])
	w.value("additional_redirect_urls", w.auth["redirect_urls"])
	w.value("jwt_expiry", w.auth["access_token_seconds"])
	w.value("enable_signup", w.auth["sign_up"])
	w.value("enable_anonymous_sign_ins", w.auth["anonymous_sign_in"])
	w.value("minimum_password_length", w.auth["password_min_length"])
	w.writePasswords()

	if !isZero(w.auth["session_seconds"]) || !isZero(w.auth["session_inactivity_seconds"]) {
		w.table("auth", "sessions")
		w.value("timebox", duration(w.auth["session_seconds"]))
		w.value("inactivity_timeout", duration(w.auth["session_inactivity_seconds"]))
	}

	w.table("auth", "rate_limit")
	if !isZero(w.auth["smtp"]) {
		w.value("email_sent", w.auth["mails_per_hour"])
	}
	w.value("sign_in_sign_ups", w.auth["sign_ins_per_five_minutes"])
	w.value("token_verifications", w.auth["checks_per_five_minutes"])
	w.value("anonymous_users", w.auth["anonymous_per_hour"])
	if isTrue(member(w.auth["sms"], "sign_in")) || isTrue(member(w.auth["sms"], "factors")) {
		w.value("sms_sent", member(w.auth["sms"], "per_hour"))
	}
}

func (w *configWriter) writePasswords() {
	sets, _ := w.auth["password_required_characters"].([]any)
	for name, want := range passwordSets {
		var all []any
		_ = copyJSON(want, &all) // texts
		if equal(all, any(sets)) {
			w.value("password_requirements", name)
			return
		}
	}

	w.note("password_required_characters: the configuration has other sets only")
}

// duration returns seconds as a duration.
func duration(v any) any {
	n, _ := v.(float64)
	return fmt.Sprintf("%.0fs", n)
}

func (w *configWriter) writeMail() {
	w.table("auth", "email")
	w.value("enable_confirmations", w.auth["confirm_email"])
	w.value("max_frequency", duration(w.auth["mail_interval_seconds"]))
	w.value("otp_expiry", w.auth["code_seconds"])
	w.writeSMTP()

	mails, _ := w.auth["mails"].(map[string]any)
	for _, kind := range slices.Sorted(maps.Keys(mails)) {
		html, _ := member(mails[kind], "html").(string)
		switch {
		case mailSubjects[kind] == "":
			w.note("mails.%s: the configuration has no languages", kind)
			continue
		case html == "":
			w.note("mails.%s: the configuration has mails with HTML only", kind)
			continue
		case !isZero(member(mails[kind], "text")):
			w.note("mails.%s.text: the configuration has mails with HTML only", kind)
		}

		name := Folder + "/templates/" + kind + ".html"
		w.files[name] = html
		w.table("auth", "email", "template", kind)
		w.value("subject", member(mails[kind], "subject"))
		w.value("content_path", "./"+name)
	}
}

func (w *configWriter) writeSMTP() {
	text, _ := member(w.auth["smtp"], "url").(string)
	u, err := url.Parse(text)
	if text == "" || err != nil {
		return
	}

	ports := map[string]string{"smtp": "587", "smtps": "465"}
	port := u.Port()
	if port == "" {
		port = ports[u.Scheme]
	}
	if (port == "465") != (u.Scheme == "smtps") {
		w.note("smtp.url: the configuration has smtps on port 465 only")
	}

	w.table("auth", "email", "smtp")
	w.value("enabled", true)
	w.value("host", u.Hostname())
	fmt.Fprintf(&w.text, "port = %s\n", port)
	if u.User.Username() != "" {
		w.value("user", u.User.Username())
	}

	w.secret("pass", "smtp", "SMTP_PASSWORD")
	name, address := splitSender(member(w.auth["smtp"], "from"))
	w.value("admin_email", address)
	if name != "" {
		w.value("sender_name", name)
	}
}

func (w *configWriter) writeHooks() {
	hooks, _ := w.auth["hooks"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(hooks)) {
		w.table("auth", "hook", name)
		w.value("enabled", true)
		w.value("uri", hooks[name])
		w.secret("secrets", "hooks."+name, "AUTH_HOOK_"+strings.ToUpper(name)+"_SECRETS")
	}
}

func (w *configWriter) writeProviders() {
	providers, _ := w.auth["providers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		p := providers[name]
		if !slices.Contains(providerNames, name) {
			w.note("providers.%s: the configuration has no custom providers", name)
			continue
		}

		ids := []string{fmt.Sprint(member(p, "client_id"))}
		others, _ := member(p, "other_client_ids").([]any)
		for _, id := range others {
			ids = append(ids, fmt.Sprint(id))
		}

		w.table("auth", "external", name)
		w.value("enabled", isTrue(member(p, "enabled")))
		w.value("client_id", strings.Join(ids, ","))
		w.secret("secret", "providers."+name, "AUTH_EXTERNAL_"+strings.ToUpper(name)+"_SECRET")
		w.value("url", member(p, "url"))
		w.value("skip_nonce_check", member(p, "skip_nonce"))
	}
}

// writeRest writes the captcha, passkeys and the OAuth server, if they are on.
func (w *configWriter) writeRest() {
	if captcha := w.auth["captcha"]; isTrue(member(captcha, "enabled")) {
		w.table("auth", "captcha")
		w.value("enabled", true)
		w.value("provider", member(captcha, "provider"))
		w.secret("secret", "captcha", "AUTH_CAPTCHA_SECRET")
		if !isZero(member(captcha, "url")) {
			w.note("captcha.url: the configuration has the providers' own addresses only")
		}
	}

	passkeys := w.auth["webauthn"]
	if isTrue(member(passkeys, "factors")) {
		w.table("auth", "mfa", "web_authn")
		w.value("enroll_enabled", true)
	}
	if isTrue(member(passkeys, "passkeys")) {
		w.table("auth", "passkey")
		w.value("enabled", true)
	}
	isSet := func(name string) bool { return !isZero(member(passkeys, name)) }
	if isSet("rp_id") || isSet("rp_name") || isSet("origins") {
		w.table("auth", "webauthn")
		w.value("rp_id", member(passkeys, "rp_id"))
		w.value("rp_display_name", member(passkeys, "rp_name"))
		w.value("rp_origins", member(passkeys, "origins"))
	}

	if oauth := w.auth["oauth_server"]; isTrue(member(oauth, "enabled")) {
		w.table("auth", "oauth_server")
		w.value("enabled", true)
		w.value("authorization_url_path", member(oauth, "authorization_path"))
		w.value("allow_dynamic_registration", member(oauth, "allow_dynamic_registration"))
	}

	if isTrue(w.auth["leaked_password_check"]) {
		w.note("leaked_password_check: the configuration can't say it")
	}
}
