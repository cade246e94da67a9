package httpx

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// between are the headers by which a proxy says that it stands between, or a browser that a page asks through
// it, which may be anyone's.
var between = []string{
	"Origin", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via",
}

// client returns the address of who asks, and whether they do so without a proxy between. Of
// X-Forwarded-For, read from its end, each address is believed while the one that reported it is trusted.
func client(r *http.Request, trusted []netip.Prefix) (netip.Addr, bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}

	addr := peer.Addr().Unmap()
	direct := !slices.ContainsFunc(between, func(h string) bool { return len(r.Header[h]) > 0 })

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

// Network returns what an address is counted under: itself, or its /64, which is what one customer has in IPv6.
func Network(a netip.Addr) string {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}

	return a.String()
}

// longestAgent is how much of a client's name is kept, in bytes.
const longestAgent = 200

// agent returns what a client calls itself, without what could not be kept or shown as text.
func agent(r *http.Request) string {
	name := r.UserAgent()
	// nearly always
	if len(name) <= longestAgent && !strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) {
		return name
	}

	name = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(name, ""))
	if len(name) > longestAgent {
		name = strings.ToValidUTF8(name[:longestAgent], "")
	}

	return name
}
