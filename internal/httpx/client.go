package httpx

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// proxyHeaders show that a request came through a proxy or from a browser page, which may be from
// any origin.
var proxyHeaders = []string{
	"Origin", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via",
}

// clientAddr returns the client's address and whether the request is direct. It reads
// X-Forwarded-For from its end and trusts an entry while the hop that reported it is trusted.
func clientAddr(r *http.Request, proxies []netip.Prefix) (netip.Addr, bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}

	addr := peer.Addr().Unmap()
	direct := !slices.ContainsFunc(proxyHeaders, func(h string) bool { return len(r.Header[h]) > 0 })

	header := r.Header["X-Forwarded-For"]
	if len(header) == 0 {
		return addr.WithZone(""), direct
	}

	hops := strings.Split(strings.Join(header, ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			break
		}

		hopAddr, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}

		addr = hopAddr.Unmap()
	}

	return addr.WithZone(""), direct
}

// Network returns an address's rate-limit key: the address itself, or in IPv6 its /64, which
// belongs to one customer.
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
