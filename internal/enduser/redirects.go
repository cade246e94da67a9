package enduser

import "github.com/socle-dev/socle/internal/weburl"

// Redirect returns the address where a link leads: the requested one if the settings allow it, or
// the site.
func (d *Directory) Redirect(requested string) string {
	if requested != "" && d.allows(requested) {
		return requested
	}
	return d.SiteURL
}

// allows reports whether an address is one of the site's, or matches a pattern of the settings.
func (d *Directory) allows(requested string) bool {
	if len(requested) > maxURL {
		return false
	}

	u, err := weburl.Parse(requested)
	if err != nil {
		return false
	}

	if site, err := weburl.ParseSite(d.SiteURL); err == nil && u.IsWeb() && u.Origin() == site.Origin() {
		return true
	}

	for _, pattern := range d.RedirectURLs {
		if compiled, err := weburl.ParsePattern(pattern); err == nil && compiled.Matches(u) {
			return true
		}
	}

	return false
}
