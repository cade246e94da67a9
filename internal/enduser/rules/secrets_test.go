package rules

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/token"
)

// TestSecretsAreSealed: the stored secrets open only with the key of their project.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()

	key, other := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	sealed, err := Secrets{"providers.github": "s3cret"}.Seal(key)
	if err != nil || bytes.Contains(sealed, []byte("s3cret")) || bytes.Contains(sealed, []byte("github")) {
		t.Fatalf("got %q, %v", sealed, err)
	}

	if secrets, err := OpenSecrets(key, sealed); err != nil || secrets.Provider("github") != "s3cret" {
		t.Errorf("got %v, %v", secrets, err)
	}
	if _, err := OpenSecrets(other, sealed); !errors.Is(err, token.ErrSealed) {
		t.Errorf("another project: got %v, want %v", err, token.ErrSealed)
	}

	none, err := Secrets{}.Seal(key)
	if err != nil || none != nil {
		t.Errorf("no secrets: got %q, %v", none, err)
	}
	if secrets, err := OpenSecrets(key, nil); err != nil || secrets == nil {
		t.Errorf("no secrets: got %v, %v, want an empty map", secrets, err)
	}
}

func TestSetSecrets(t *testing.T) {
	t.Parallel()

	s := Secrets{"smtp": "a", "captcha": "b"}
	s.Set(map[string]string{"smtp": "", "captcha": "c", "hooks.send_email": "d"})
	if got := strings.Join(s.Names(), " "); got != "captcha hooks.send_email" || s["captcha"] != "c" {
		t.Errorf("got %s, %v", got, s)
	}
	if got := (Secrets{}).Names(); got == nil {
		t.Error("the names of no secrets are null")
	}
}

func TestNamesOfSecrets(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{"captcha": "", "smtp": "", "sms.hook": "", "sms.twilio": "",
		"hooks.send_email": "", "hooks.other": "unknown", "hooks.": "unknown", "providers.github": "",
		"providers.custom:x": "", "providers.other": "unknown", "other": "unknown", "": "unknown"} {
		got := ""
		if err := (Secrets{name: "x"}).validate(); err != nil {
			got = fault.Of(err).Fields[0].Code
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}

	err := Secrets{"smtp": strings.Repeat("x", maxSecret+1)}.validate()
	if fault.Of(err).Fields[0].Code != "too_long" {
		t.Errorf("a long secret: got %v", err)
	}
}
