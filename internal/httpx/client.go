package httpx

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// proxyHeaders are headers of requests through a proxy or from a browser page, which may be of any
// origin.
var proxyHeaders = []string{
	"Origin", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via",
}

// clientAddr returns the address of the client and whether the request is direct. It reads
// X-Forwarded-For from its end and trusts an entry while the hop that reported it is trusted.
func clientAddr(r *http.Request, trusted []netip.Prefix) (netip.Addr, bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}

	addr := peer.Addr().Unmap()
	direct := !slices.ContainsFunc(proxyHeaders, func(h string) bool { return len(r.Header[h]) > 0 })

	forwarded := r.Header["X-Forwarded-For"]
	if len(forwarded) == 0 {
		return addr.WithZone(""), direct
	}

	hops := strings.Split(strings.Join(forwarded, ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			break
		}

		forwarded, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}

		addr = forwarded.Unmap()
	}

	return addr.WithZone(""), direct
}

// Network returns the rate-limit key of an address: the address itself, or its /64 in IPv6, which
// is one customer's.
func Network(a netip.Addr) string {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}

	return a.String()
}

// maxAgentSize bounds the stored User-Agent, in bytes.
const maxAgentSize = 200

// userAgent returns the User-Agent without unprintable characters, truncated.
func userAgent(r *http.Request) string {
	name := r.UserAgent()
	// fast path
	if len(name) <= maxAgentSize && !strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) {
		return name
	}

	name = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(name, ""))
	if len(name) > maxAgentSize {
		name = strings.ToValidUTF8(name[:maxAgentSize], "")
	}

	return name
}
