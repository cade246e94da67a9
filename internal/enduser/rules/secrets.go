package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/token"
)

// Secrets are the secrets of a project's settings by name. They are written by its administrators
// and never shown.
type Secrets map[string]string

// Names of secrets. Others begin with [hookSecrets] or [providerSecrets].
const (
	SecretCaptcha = "captcha"
	SecretSMTP    = "smtp" // password of the mail server
	SecretSMSHook = "sms.hook"
	SecretTwilio  = "sms.twilio"
)

// Beginnings of the names of secrets.
const (
	hookSecrets     = "hooks."     // followed by the name of a hook
	providerSecrets = "providers." // followed by the name of a provider
)

const (
	maxSecret  = 4096 // bytes
	maxSecrets = 50
)

// isSecret reports whether a name is that of a secret of the settings.
func isSecret(name string) bool {
	switch name {
	case SecretCaptcha, SecretSMTP, SecretSMSHook, SecretTwilio:
		return true
	}

	if hook, ok := strings.CutPrefix(name, hookSecrets); ok {
		return hookEvents[hook] != ""
	}

	provider, ok := strings.CutPrefix(name, providerSecrets)
	return ok && idp.Known(provider)
}

// Hook returns the secret that signs the events of a hook.
func (s Secrets) Hook(name string) string { return s[hookSecrets+name] }

// Provider returns the secret of an identity provider.
func (s Secrets) Provider(name string) string { return s[providerSecrets+name] }

// Names returns the names of the secrets, sorted.
func (s Secrets) Names() []string {
	names := slices.Sorted(maps.Keys(s))
	if names == nil {
		names = []string{}
	}

	return names
}

// Set sets secrets. An empty one is removed.
func (s Secrets) Set(changes map[string]string) {
	for name, text := range changes {
		if text == "" {
			delete(s, name)
		} else {
			s[name] = text
		}
	}
}

func (s Secrets) validate() error {
	if err := tooMany("secrets", len(s), maxSecrets); err != nil {
		return err
	}

	var errs []error
	for name, text := range s {
		switch {
		case !isSecret(name):
			errs = append(errs, refuse("secrets."+name, "unknown", "is no secret of the settings"))
		case len(text) > maxSecret:
			errs = append(errs, refuse("secrets."+name, "too_long", "must have at most %d bytes", maxSecret))
		}
	}

	return fault.Join(errs...)
}

// Seal returns the secrets encrypted under a key of the project, nil if there are none.
func (s Secrets) Seal(key []byte) ([]byte, error) {
	if len(s) == 0 {
		return nil, nil
	}

	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}

	return token.Seal(key, text)
}

// OpenSecrets returns the secrets that [Secrets.Seal] sealed.
func OpenSecrets(key, sealed []byte) (Secrets, error) {
	s := Secrets{}
	if len(sealed) == 0 {
		return s, nil
	}

	text, err := token.Open(key, sealed)
	if err != nil {
		return s, fmt.Errorf("open the secrets of the settings: %w", err)
	}

	return s, json.Unmarshal(text, &s)
}

// require fails with Unprocessable if a secret is absent. reason is the text of the failure.
func (s Secrets) require(name, reason string) error {
	if _, ok := s[name]; ok {
		return nil
	}
	return refuse("secrets."+name, "required", "%s", reason)
}

// checkWebhook fails with Unprocessable unless a secret can sign webhooks. reason is the text for
// an absent one.
func (s Secrets) checkWebhook(name, reason string) error {
	if err := s.require(name, reason); err != nil {
		return err
	}
	if _, err := outbound.ParseWebhookSecrets(s[name]); err != nil {
		return refuse("secrets."+name, "invalid_format", "%s", err)
	}

	return nil
}
