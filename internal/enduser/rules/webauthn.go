package rules

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"github.com/socle-dev/socle/internal/webauthn"
	"github.com/socle-dev/socle/internal/weburl"
)

// WebAuthn are the rules for passkeys and for authenticators as second factors. The zero WebAuthn
// has both off.
type WebAuthn struct {
	Passkeys bool     `json:"passkeys,omitempty" doc:"Users may register passkeys and sign in with them."`
	Factors  bool     `json:"factors,omitempty" doc:"Users may have authenticators as second factors."`
	RPID     string   `json:"rp_id,omitempty" maxLength:"253" doc:"Domain that credentials are for, with its subdomains. Default: the host of the site. A change makes former credentials useless."`
	RPName   string   `json:"rp_name,omitempty" maxLength:"100" doc:"Name that authenticators show. Default: the domain."`
	Origins  []string `json:"origins,omitempty" maxItems:"20" doc:"Origins of the application's pages, such as https://app.example.com, and of its apps. Default: the origin of the site."`
}

const (
	maxRPName  = 100 // bytes
	maxOrigins = 20
)

// domain matches the domain of a relying party, which is no address.
var domain = regexp.MustCompile(`^(localhost|([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9])$`)

// RelyingParty returns the application that credentials are for, whose address was checked.
func (w WebAuthn) RelyingParty(siteURL string) webauthn.RelyingParty {
	site, _ := weburl.ParseSite(siteURL)
	rp := webauthn.RelyingParty{ID: cmp.Or(w.RPID, site.Host), Origins: w.Origins}
	if len(rp.Origins) == 0 {
		rp.Origins = []string{site.Origin()}
	}

	return rp
}

func (w WebAuthn) validate(siteURL string) error {
	if err := w.check(siteURL); err != nil {
		return refuse("webauthn", "invalid_format", "%s", err)
	}
	return nil
}

// check fails for the first invalid member.
func (w WebAuthn) check(siteURL string) error {
	if !w.Passkeys && !w.Factors && w.RPID == "" && len(w.Origins) == 0 {
		return nil
	}

	rp := w.RelyingParty(siteURL)
	if !domain.MatchString(rp.ID) {
		return errors.New("rp_id, by default the host of site_url, must be a domain")
	}
	if len(w.RPName) > maxRPName {
		return errors.New("rp_name must have at most 100 bytes")
	}
	if len(w.Origins) > maxOrigins {
		return errors.New("origins must have at most 20 items")
	}

	for _, origin := range rp.Origins {
		if err := checkOrigin(origin, rp.ID); err != nil {
			return err
		}
	}

	return nil
}

// checkOrigin fails unless an origin is that of an app, or of a page in a domain.
func checkOrigin(origin, domain string) error {
	u, err := weburl.Parse(origin)
	switch {
	case err != nil || len(origin) > maxURL:
		return errors.New("origins must be origins such as https://app.example.com")
	case !u.IsWeb(): // registered by a mobile app
		return nil
	case u.Origin() != origin:
		return errors.New("origins must be origins such as https://app.example.com")
	case u.Host != domain && !strings.HasSuffix(u.Host, "."+domain):
		return errors.New("origins must be of the domain rp_id or of its subdomains")
	}

	return nil
}
