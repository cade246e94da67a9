package enduser

import (
	"errors"
	"strings"
	"unicode"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
)

const maxDescription = 300 // runes in a provider's text

// oauthProvider returns an enabled provider with its secret. It fails with Invalid.
func (d *Directory) oauthProvider(name string) (idp.Config, error) {
	config := d.ProviderConfig(name)
	switch {
	case !idp.Known(name):
		return config, errInvalid("Unsupported provider: Provider %.50s could not be found", name)
	case !d.Providers[name].Enabled:
		return config, fault.New(fault.Invalid, "Unsupported provider: provider is not enabled").
			WithCode("provider_disabled")
	case config.Secret == "":
		return config, errInvalid("Unsupported provider: missing OAuth secret")
	}

	return config, nil
}

// providerFailure returns a provider's failure for clients, and logs one that the settings or the
// provider are to blame for. Only the log tells a refused network from a closed port.
func (d *Directory) providerFailure(provider string, err error) error {
	if errors.Is(err, idp.ErrProvider) {
		d.service.Log.Warn("sign-in with an identity provider", "project", d.UUID, "provider", provider, "error", err)
	}

	return errProvider(err)
}

// declinedCodes are the providers' codes for a person who did not agree.
var declinedCodes = map[string]bool{"access_denied": true, "user_cancelled_authorize": true,
	"user_cancelled_login": true, "consent_required": true, "interaction_required": true, "login_required": true}

// errAnswer is the failure that a provider has sent with the browser, with its code and text.
func errAnswer(code, text string) error {
	word := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_') {
			return r
		}
		return -1
	}, code)
	word = word[:min(len(word), 60)]

	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), unicode.IsControl), " ")
	if all := []rune(text); len(all) > maxDescription {
		text = string(all[:maxDescription])
	}
	if word == "" {
		word = "server_error"
	}
	if text == "" {
		text = "The provider answers " + word
	}

	if declinedCodes[word] {
		return fault.New(fault.Forbidden, "%s", text).WithCode(word)
	}

	return fault.New(fault.Invalid, "%s", text).WithCode(word)
}

// errProvider translates a failure in package idp into a sign-in's failure.
func errProvider(err error) error {
	refused, isRefused := errors.AsType[*idp.RefusedError](err)
	switch {
	case isRefused:
		return fault.New(fault.Invalid, "Unable to exchange external code: %s", refused.Code).
			WithCode("unexpected_failure").WithCause(err)
	case errors.Is(err, idp.ErrUnknown):
		return fault.New(fault.Invalid, "The provider issues no ID tokens").WithCode("validation_failed").WithCause(err)
	case errors.Is(err, idp.ErrNonce):
		return fault.New(fault.Invalid, "Nonces mismatch").WithCode("bad_jwt").WithCause(err)
	case errors.Is(err, idp.ErrIDToken):
		return fault.New(fault.Invalid, "Bad ID token").WithCode("bad_jwt").WithCause(err)
	}

	return fault.New(fault.Invalid, "The provider could not be reached or answers otherwise than agreed").
		WithCode("unexpected_failure").WithCause(err)
}
