package authapi_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

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

// TestSettingsOfAnyText: settings that are accepted are read again as they were written, by the API
// and by the service of end users.
func TestSettingsOfAnyText(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	path, r := "/projects/"+p.Project+"/auth-settings", rand.New(rand.NewPCG(3, 4))
	quoted := func(s string) string {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	accepted := 0
	for i := range 60 {
		text := randomText(r)
		body := []string{
			`{"mails": {"recovery": {"subject": TEXT, "text": TEXT, "html": TEXT}, "invite.de": {"subject": "x", "text": TEXT}}}`,
			`{"providers": {"github": {"client_id": TEXT, "other_client_ids": [TEXT]}}}`,
			`{"sms": {"text": TEXT_AND_TOKEN}}`,
			`{"webauthn": {"rp_name": TEXT}}`,
			`{"secrets": {"providers.github": TEXT, "smtp": TEXT}}`,
			`{"smtp": {"from": TEXT}}`,
		}[i%6]
		body = strings.NewReplacer("TEXT_AND_TOKEN", quoted(text+"{{ .Token }}"), "TEXT", quoted(text)).Replace(body)

		written := p.Put(path, body)
		if written.Status != 200 {
			written.Want(422)
			continue
		}

		accepted++
		read := p.Get(path).Want(200)
		if string(read.Body) != string(written.Body) {
			t.Errorf("%s: read\n%s\nwrote\n%s", body, read.Body, written.Body)
		}

		s := p.directory().Settings
		for kind, value := range map[int]string{0: s.Mails["recovery"].Text + s.Mails["invite.de"].Text,
			1: s.Providers["github"].ClientID, 2: s.SMS.Text, 3: s.WebAuthn.RPName} {
			if kind == i%6 && !strings.Contains(value, text) {
				t.Errorf("%s: end users have %q, want %q", body, value, text)
			}
		}
	}
	if accepted < 30 {
		t.Errorf("got %d accepted texts, want enough to prove anything", accepted)
	}

	// Once, such a text ended the end users of the project.
	p.send("POST", "/admin/users", p.secret, `{"email":"ann@example.com","email_confirm":true}`).want(200)
	p.Put(path, `{"mails": {"recovery": {"subject": "say \"x\" \\ y", "text": "a\nb {{ .ConfirmationURL }}"}}}`).Want(200)
	p.post("/recover", `{"email":"ann@example.com"}`).want(200)
	if m := p.mail("recovery", "ann@example.com"); m.Subject != `say "x" \ y` {
		t.Errorf("got the subject %q", m.Subject)
	}
}

// TestSettingsOfWrongTypes: values of maps are checked like members.
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
	p.send("GET", "/settings", "", "").want(200)
}
