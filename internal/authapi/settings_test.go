package authapi_test

import (
	"testing"
)

// TestSettingsOfAnyText: the service of end users reads settings as the API writes them. Once, such
// a text ended the end users of the project.
func TestSettingsOfAnyText(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	p.send("POST", "/admin/users", p.secret, `{"email":"ann@example.com","email_confirm":true}`).want(200)
	p.Put("/projects/"+p.Project+"/auth-settings", `{"mails": {"recovery":
		{"subject": "say \"x\" \\ y", "text": "a\nb {{ .ConfirmationURL }}"}}}`).Want(200)
	p.post("/recover", `{"email":"ann@example.com"}`).want(200)
	if m := p.mail("recovery", "ann@example.com"); m.Subject != `say "x" \ y` {
		t.Errorf("got the subject %q", m.Subject)
	}
}

// TestSettingsOfWrongTypes: values of maps are checked like members, and clients read valid ones.
func TestSettingsOfWrongTypes(t *testing.T) {
	t.Parallel()

	p := newApp(t, nil)
	for body, field := range map[string]string{
		`{"hooks": {"custom_access_token": 5}}`:            "hooks.custom_access_token",
		`{"hooks": {"custom_access_token": {"uri": "x"}}}`: "hooks.custom_access_token",
		`{"hooks": {"custom_access_token": null}}`:         "hooks.custom_access_token",
		`{"hooks": []}`:                                                   "hooks",
		`{"secrets": {"smtp": ["x"]}}`:                                    "secrets.smtp",
		`{"secrets": {"smtp": "a\u0000b"}}`:                               "secrets.smtp",
		`{"providers": {"github": "x"}}`:                                  "providers.github",
		`{"providers": {"github": {"enabled": "yes"}}}`:                   "providers.github.enabled",
		`{"providers": {"github": {"client_id": 5}}}`:                     "providers.github.client_id",
		`{"providers": {"github": {"other_client_ids": [5]}}}`:            "providers.github.other_client_ids.0",
		`{"mails": {"invite": {"subject": 1, "text": "x"}}}`:              "mails.invite.subject",
		`{"mails": {"invite": {"subject": "\u0000", "text": "x"}}}`:       "mails.invite.subject",
		`{"mails": {"invite": ["x"]}}`:                                    "mails.invite",
		`{"sms": {"test_numbers": {"49170": 123456}}}`:                    "sms.test_numbers.49170",
		`{"mails": {"invite": {"subject": "x", "html": {}, "text": ""}}}`: "mails.invite.html",
	} {
		p.Put("/projects/"+p.Project+"/auth-settings", body).Want(422).Field(field)
	}

	p.Put("/projects/"+p.Project+"/auth-settings", `{"sms": {"sender": "twilio", "twilio_account_sid": "AC1",
		"twilio_from": "+15005550006"}, "secrets": {"sms.twilio": "token"}}`).Want(200)
	p.send("GET", "/settings", "", "").want(200).equal("sms_provider", "twilio")
}
