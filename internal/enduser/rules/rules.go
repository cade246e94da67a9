// Package rules has the rules of a project for its end users: the settings, their validation, the
// secrets beside them, and what follows from both without a database: limits, redirects, texts of
// messages, the relying party of passkeys.
//
// Everything here is a pure function of the settings. Package enduser stores them and applies them.
package rules

import (
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/idp"
)

// Config is the configuration of a project's end users.
type Config struct {
	Settings
	Secrets       Secrets
	KeyGeneration int // number of the key that signs access tokens, from 1
}

// Validate fails with Unprocessable, with a fault for each invalid member, and gives absent members
// their defaults.
func (c *Config) Validate() error {
	err := fault.Join(c.Settings.validate(), c.Secrets.validate(), c.Captcha.validate(c.Secrets[SecretCaptcha]),
		c.validateSMSSecret(), c.validateHookSecrets(), c.SMTP.validate(c.Secrets[SecretSMTP]))
	c.fillAbsent()

	return err
}

// validateSMSSecret fails if the sender of text messages has no valid secret.
func (c *Config) validateSMSSecret() error {
	const reason = "is required by the sender of text messages"
	switch c.SMS.SenderName() {
	case SenderHook:
		if !hook.NeedsSecret(c.SMS.HookURL) {
			return nil
		}
		return c.Secrets.checkWebhook(SecretSMSHook, reason)
	case SenderTwilio:
		return c.Secrets.require(SecretTwilio, reason)
	}

	return nil
}

// validateHookSecrets fails with Unprocessable unless each endpoint that needs a secret has one.
func (c *Config) validateHookSecrets() error {
	var errs []error
	for name, address := range c.Hooks {
		if hook.NeedsSecret(address) && hookEvents[name] != "" {
			errs = append(errs, c.Secrets.checkWebhook(hookSecrets+name, "is required by the URL of the hook"))
		}
	}

	return fault.Join(errs...)
}

// ProviderConfig returns the configuration of a provider for package idp.
func (c *Config) ProviderConfig(name string) idp.Config {
	p := c.Providers[name]
	return idp.Config{Name: name, ClientID: p.ClientID, OtherClientIDs: p.OtherClientIDs,
		Secret: c.Secrets.Provider(name), URL: p.URL, SkipNonce: p.SkipNonce}
}
