package httpx

import (
	"net/http"
	"net/url"
)

// ProtectCrossOrigin returns a check that refuses changes which pages of other origins send. It
// trusts the origin of the server's public URL, since a proxy may change the Host.
func ProtectCrossOrigin(publicURL string) *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	if u, err := url.Parse(publicURL); err == nil && u.Host != "" {
		_ = p.AddTrustedOrigin(u.Scheme + "://" + u.Host) // fails only for an origin with a path
	}

	return p
}
