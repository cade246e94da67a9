package rules

import "github.com/socle-dev/socle/internal/weburl"

// Redirect returns the address where a link leads: the requested one if the settings allow it, or
// the site.
func (s *Settings) Redirect(requested string) string {
	if requested != "" && s.allows(requested) {
		return requested
	}
	return s.SiteURL
}

// allows reports whether an address is one of the site's, or matches a pattern of the settings.
func (s *Settings) allows(requested string) bool {
	if len(requested) > maxURL {
		return false
	}

	u, err := weburl.Parse(requested)
	if err != nil {
		return false
	}

	if site, err := weburl.ParseSite(s.SiteURL); err == nil && u.IsWeb() && u.Origin() == site.Origin() {
		return true
	}

	for _, pattern := range s.RedirectURLs {
		if p, err := weburl.ParsePattern(pattern); err == nil && p.Matches(u) {
			return true
		}
	}

	return false
}
