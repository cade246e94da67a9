package repository

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

const maxMessages = 5000 // an hour

// readPhone reads the phone number settings: to sign in with, and as second factors. The sender
// matters only if one of them is on.
func (r *settingsReader) readPhone(s, factor section) {
	r.setFlag(s, "enable_signup", "sms", "sign_in")
	r.setFlag(factor, "enroll_enabled", "sms", "factors")
	if !s.is("enable_signup") && !factor.is("enroll_enabled") {
		return
	}

	if confirm, ok := s.flag("enable_confirmations"); ok {
		r.set(s.key("enable_confirmations"), !confirm, "sms", "auto_confirm")
	}

	r.setSeconds(s, "max_frequency", 1, day, "sms", "interval_seconds")
	r.setNumber(r.d.section("auth", "rate_limit"), "sms_sent", 0, maxMessages, "sms", "per_hour")
	r.readSMSText(s)
	r.readTestNumbers(s.sub("test_otp"))
	r.readSender(s)
}

// smsCode matches the variable for the code in a text, as Supabase's tool also writes it: escaped.
var smsCode = regexp.MustCompile("\\{\\{\\s*(?:`\\{\\{\\s*\\.Code\\s*\\}\\}`|\\.Code)\\s*\\}\\}")

func (r *settingsReader) readSMSText(s section) {
	text, ok := s.text("template")
	if !ok {
		return
	}

	text = smsCode.ReplaceAllString(text, "{{ .Token }}")
	unknown := unknownVariable(text, []string{"Token", "SiteURL"})
	if unknown != "" || !strings.Contains(text, "{{ .Token }}") {
		r.d.note(s.key("template"), "is not used: its variables must be {{ .Code }} and {{ .SiteURL }}")
		return
	}

	r.set(s.key("template"), text, "sms", "text")
}

func (r *settingsReader) readTestNumbers(s section) {
	codes := map[string]any{}
	for _, number := range slices.Sorted(maps.Keys(s.values)) {
		if code, ok := s.text(number); ok {
			codes[strings.TrimPrefix(number, "+")] = code
		}
	}

	if len(codes) > 0 {
		r.set(s.path, codes, "sms", "test_numbers")
	}
}

// readSender reads the text message sender: a hook, or Twilio.
func (r *settingsReader) readSender(s section) {
	if hook := r.d.section("auth", "hook", "send_sms"); hook.is("enabled") {
		if uri, ok := r.readHook(hook); ok && !strings.HasPrefix(uri, "pg-functions://") {
			r.set(hook.path, "hook", "sms", "sender")
			r.set(hook.key("uri"), uri, "sms", "hook_url")
			r.setSecret(hook, "secrets", "sms.hook")
		} else if ok {
			r.d.note(hook.key("uri"), "is not used: the hook of text messages is functions://NAME or an https URL")
		}

		return
	}

	for _, name := range s.names() {
		if name == "test_otp" || !s.sub(name).is("enabled") {
			continue
		}
		if name != "twilio" {
			r.d.note(s.key(name), "is not available; senders are twilio and the hook send_sms")
			continue
		}

		r.readTwilio(s.sub(name))
	}
}

func (r *settingsReader) readTwilio(s section) {
	account, hasAccount := s.text("account_sid")
	sender, hasSender := s.text("message_service_sid")
	if !hasAccount || !hasSender || account == "" || sender == "" {
		if !r.d.failed(s.key("account_sid")) && !r.d.failed(s.key("message_service_sid")) {
			r.d.problem(s.path, "needs account_sid and message_service_sid")
		}
		return
	}

	member := "twilio_from"
	if strings.HasPrefix(sender, "MG") { // Twilio's prefix for messaging services
		member = "twilio_messaging_service_sid"
	}

	r.set(s.path, "twilio", "sms", "sender")
	r.set(s.key("account_sid"), account, "sms", "twilio_account_sid")
	r.set(s.key("message_service_sid"), sender, "sms", member)
	r.setSecret(s, "auth_token", "sms.twilio")
}

// writePhone writes the phone number settings.
func (w *configWriter) writePhone() {
	sms := w.auth["sms"]
	signIn, factors := isTrue(member(sms, "sign_in")), isTrue(member(sms, "factors"))
	w.table("auth", "sms")
	w.value("enable_signup", signIn)
	if !signIn && !factors {
		return
	}

	w.value("enable_confirmations", !isTrue(member(sms, "auto_confirm")))
	w.value("max_frequency", duration(member(sms, "interval_seconds")))
	if text, _ := member(sms, "text").(string); text != "" {
		w.value("template", strings.ReplaceAll(text, "{{ .Token }}", "{{ .Code }}"))
	}

	numbers, _ := member(sms, "test_numbers").(map[string]any)
	if len(numbers) > 0 {
		w.table("auth", "sms", "test_otp")
	}
	for _, number := range slices.Sorted(maps.Keys(numbers)) {
		w.value(number, numbers[number])
	}

	w.writeSender(sms)
	if factors {
		w.table("auth", "mfa", "phone")
		w.value("enroll_enabled", true)
	}

	for _, name := range []string{"calling_codes", "twilio_url"} {
		if !isZero(member(sms, name)) {
			w.note("sms.%s: the configuration can't say it", name)
		}
	}
}

func (w *configWriter) writeSender(sms any) {
	switch member(sms, "sender") {
	case "hook":
		w.table("auth", "hook", "send_sms")
		w.value("enabled", true)
		w.value("uri", member(sms, "hook_url"))
		w.secret("secrets", "sms.hook", "AUTH_HOOK_SEND_SMS_SECRETS")
	case "twilio":
		sender := member(sms, "twilio_messaging_service_sid")
		if isZero(sender) {
			sender = member(sms, "twilio_from")
		}

		w.table("auth", "sms", "twilio")
		w.value("enabled", true)
		w.value("account_sid", member(sms, "twilio_account_sid"))
		w.value("message_service_sid", sender)
		w.secret("auth_token", "sms.twilio", "AUTH_SMS_TWILIO_AUTH_TOKEN")
	}
}
