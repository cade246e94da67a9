package rules

import "github.com/socle-dev/socle/internal/outbound"

// Captcha is the setting of a service that tells people from programs.
type Captcha struct {
	Enabled  bool   `json:"enabled"`
	Provider string `json:"provider" doc:"turnstile or hcaptcha."`
	URL      string `json:"url,omitempty" maxLength:"500" doc:"Address of verification, if it is not the provider's own."`
}

// captchaServices are the addresses of verification by provider. All take the same form.
var captchaServices = map[string]string{
	"turnstile": "https://challenges.cloudflare.com/turnstile/v0/siteverify",
	"hcaptcha":  "https://api.hcaptcha.com/siteverify",
}

// Service returns the address of verification.
func (c Captcha) Service() string {
	if c.URL != "" {
		return c.URL
	}
	return captchaServices[c.Provider]
}

func (c Captcha) validate(secret string) error {
	if c == (Captcha{}) {
		return nil
	}

	if captchaServices[c.Provider] == "" {
		return refuse("captcha.provider", "unknown", "must be turnstile or hcaptcha")
	}
	if c.URL != "" {
		if err := outbound.CheckURL(c.URL); err != nil {
			return refuse("captcha.url", "invalid_format", "%s", err)
		}
	}
	if c.Enabled && secret == "" {
		return refuse("secrets.captcha", "required", "is necessary for the captcha")
	}

	return nil
}
