package repository

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// richSettings are settings of end users as the API answers them.
const richSettings = `{"signUp": false, "anonymousSignIn": true, "confirmEmail": true, "siteUrl": "https://a.example",
	"redirectUrls": ["https://b.example/**", "app://x"], "accessTokenSeconds": 900, "sessionSeconds": 86400,
	"sessionInactivitySeconds": 3600, "passwordMinLength": 12, "codeSeconds": 600, "mailIntervalSeconds": 30,
	"mailsPerHour": 50, "signInsPerFiveMinutes": 20, "checksPerFiveMinutes": 21, "anonymousPerHour": 22,
	"passwordRequiredCharacters": ["lower", "upper", "digit"], "leakedPasswordCheck": true,
	"mails": {"invite": {"subject": "Hi \"you\"", "html": "<p>{{ .ConfirmationURL }}</p>\n"}, "invite.de": {"subject": "Hallo", "text": "x"}},
	"smtp": {"url": "smtps://key@smtp.example.com:465", "from": "\"Shop\" <shop@example.com>"},
	"captcha": {"enabled": true, "provider": "turnstile"},
	"hooks": {"custom_access_token": "pg-functions://postgres/public/claims", "send_email": "https://a.example/mail"},
	"providers": {"github": {"enabled": true, "client_id": "a", "other_client_ids": ["b"], "skip_nonce": true},
		"custom:x": {"enabled": true}},
	"sms": {"sign_in": true, "factors": true, "sender": "twilio", "twilio_account_sid": "AC1", "twilio_from": "Shop",
		"text": "Code {{ .Token }}", "test_numbers": {"4912345": "123456"}, "interval_seconds": 60, "per_hour": 30,
		"per_network_and_hour": 10, "auto_confirm": true},
	"webauthn": {"passkeys": true, "factors": true, "rp_id": "a.example", "rp_name": "Shop", "origins": ["https://a.example"]},
	"oauthServer": {"enabled": true, "authorization_path": "/consent", "allow_dynamic_registration": true}}`

// TestRender writes a project's settings and reads them back: nothing is left to change.
func TestRender(t *testing.T) {
	t.Parallel()

	open := true
	for name, auth := range map[string]string{"rich": richSettings, "plain": `{"signUp": true, "siteUrl": "http://localhost:3000",
		"passwordRequiredCharacters": [], "sms": {"interval_seconds": 60}, "mails": {}, "accessTokenSeconds": 3600,
		"passwordMinLength": 8, "codeSeconds": 3600, "mailIntervalSeconds": 60, "signInsPerFiveMinutes": 30,
		"checksPerFiveMinutes": 30, "anonymousPerHour": 30}`} {
		s := Snapshot{Name: "Büro \"A\"",
			SecretNames: []string{"smtp", "captcha", "providers.github", "hooks.send_email", "sms.twilio",
				"vault.stripe key"},
			Containers: []Container{
				{Name: "photos", IsPublic: true, MaxSize: 1000, Types: []string{"image/png"}},
				{Name: "logs", MaxSize: 5}},
			Rest: map[string]any{"schemas": []any{"public", "shop"}, "maxRows": float64(1000)}, OpenTables: &open}
		if err := json.Unmarshal([]byte(auth), &s.Auth); err != nil {
			t.Fatal(err)
		}

		files, notes := Render(s)
		r, err := Open(write(t, files), environment(nil))
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, files[ConfigFile])
		}
		if err := r.CheckSecrets(s.SecretNames); err != nil {
			t.Errorf("%s: secrets: %v", name, err)
		}

		update, err := PlanSettings(s.Auth, r.Config.Auth)
		if len(update.Changes) > 0 || err != nil || update.Unchanged == 0 {
			t.Errorf("%s: read back, %d are the same, changes %v, %v:\n%s", name, update.Unchanged, update.Changes, err, files[ConfigFile])
		}
		if rest, err := PlanSettings(s.Rest, r.Config.Rest); len(rest.Changes) > 0 || err != nil {
			t.Errorf("%s: rows API: changes %v, %v", name, rest.Changes, err)
		}

		for i, b := range r.Config.Buckets { // sorted by name
			if u, err := PlanBucket(b, &s.Containers[len(s.Containers)-1-i]); len(u.Changes) > 0 || err != nil {
				t.Errorf("%s: bucket %s: changes %v, %v", name, b.Name, u.Changes, err)
			}
		}

		if len(r.Notes) > 0 || r.Name() != s.Name || !*r.Config.OpenTables || len(r.Config.Buckets) != 2 {
			t.Errorf("%s: got notes %v, name %s, %d buckets", name, r.Notes, r.Name(), len(r.Config.Buckets))
		}

		want := []string{"leaked_password_check: the configuration can't say it", "mails.invite.de: the configuration has no languages",
			"providers.custom:x: the configuration has no custom providers"}
		if diff := cmp.Diff(notes, want); name == "rich" && diff != "" {
			t.Errorf("notes (-got +want):\n%s", diff)
		}
		if strings.Contains(files[ConfigFile], "null") {
			t.Errorf("%s: a value is null:\n%s", name, files[ConfigFile])
		}
	}
}
