package enduser

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/token"
)

// Secrets are the secrets of a project's settings by name. They are written by its administrators
// and never shown.
type Secrets map[string]string

const (
	maxSecret  = 4096 // bytes
	maxSecrets = 50
)

// isSecret reports whether a name is that of a secret: captcha, smtp, sms.hook, sms.twilio, hooks.
// and the name of a hook, or providers. and the name of a provider.
func isSecret(name string) bool {
	if name == captchaSecret || name == smtpSecret || name == hookSecret || name == twilioSecret {
		return true
	}

	if hook, ok := strings.CutPrefix(name, hookSecrets); ok {
		return contractHooks[hook] != ""
	}

	provider, ok := strings.CutPrefix(name, "providers.")
	return ok && idp.Known(provider)
}

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
	if len(s) > maxSecrets {
		return fault.OnField(fault.Unprocessable, "secrets", "too_many", "must have at most %d items", maxSecrets)
	}

	var errs []error
	refuse := func(name, code, format string, args ...any) {
		errs = append(errs, fault.OnField(fault.Unprocessable, "secrets."+name, code, format, args...))
	}

	for name, text := range s {
		switch {
		case !isSecret(name):
			refuse(name, "unknown", "is no secret of the settings")
		case len(text) > maxSecret:
			refuse(name, "too_long", "must have at most %d bytes", maxSecret)
		}
	}

	return fault.Join(errs...)
}

// seal returns the secrets encrypted under a key of the project, nil if there are none.
func (s Secrets) seal(projects *projectdb.Registry, project uuid.UUID) ([]byte, error) {
	if len(s) == 0 {
		return nil, nil
	}

	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}

	return token.Seal(projects.EndUserKey(project, "secrets of settings"), text)
}

// openSecrets returns the secrets that [Secrets.seal] sealed.
func openSecrets(projects *projectdb.Registry, project uuid.UUID, sealed []byte) (Secrets, error) {
	s := Secrets{}
	if len(sealed) == 0 {
		return s, nil
	}

	text, err := token.Open(projects.EndUserKey(project, "secrets of settings"), sealed)
	if err != nil {
		return s, fmt.Errorf("open the secrets of the settings: %w", err)
	}

	return s, json.Unmarshal(text, &s)
}

// checkWebhook fails with Unprocessable unless a secret can sign webhooks. required is the text for
// an absent one.
func (s Secrets) checkWebhook(name, required string) error {
	text, ok := s[name]
	if !ok {
		return fault.OnField(fault.Unprocessable, "secrets."+name, "required", "%s", required)
	}
	if _, err := outbound.ParseWebhookSecrets(text); err != nil {
		return fault.OnField(fault.Unprocessable, "secrets."+name, "invalid_format", "%s", err)
	}

	return nil
}
