package rules

import (
	"errors"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/outbound"
)

// Provider is an identity provider as a project uses it.
type Provider struct {
	Enabled        bool     `json:"enabled" required:"false"`
	ClientID       string   `json:"client_id" required:"false" maxLength:"500" doc:"Id of the application at the provider, and audience of its ID tokens."`
	OtherClientIDs []string `json:"other_client_ids,omitempty" maxItems:"20" doc:"More audiences, such as those of mobile apps."`
	URL            string   `json:"url,omitempty" maxLength:"500" doc:"Issuer of keycloak, azure and custom providers; address of an own GitHub or GitLab."`
	SkipNonce      bool     `json:"skip_nonce,omitempty" doc:"Accept ID tokens without their nonce."`
}

const maxProviders = 30

func validateProviders(providers map[string]Provider) error {
	errs := []error{tooMany("providers", len(providers), maxProviders)}
	for name, p := range providers {
		if err := p.check(name); err != nil {
			errs = append(errs, refuse("providers."+name, "invalid_format", "%s", err))
		}
	}

	return fault.Join(errs...)
}

// check fails for an invalid provider of a name.
func (p Provider) check(name string) error {
	switch {
	case !idp.Known(name):
		return errors.New("is neither a known provider nor custom: and a name")
	case p.Enabled && p.ClientID == "":
		return errors.New("needs a client_id")
	case p.Enabled && p.URL == "" && idp.NeedsURL(name):
		return errors.New("needs a url")
	case p.URL != "":
		return outbound.CheckURL(p.URL)
	}

	return nil
}
