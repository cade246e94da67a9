package outbound

import "net/netip"

// global is the IPv6 address space that is assigned to the internet.
var global = netip.MustParsePrefix("2000::/3")

// special are the networks outside the internet, by IANA's special-purpose address registries:
// private, shared, loopback, link-local with clouds' metadata services, multicast, reserved, and
// IPv6 networks that contain an IPv4 address.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // Azure's hosts
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}

	return all
}

// isPublic reports whether an address is on the internet.
func isPublic(a netip.Addr) bool {
	return a.Zone() == "" && (a.Is4() || global.Contains(a)) && !contains(special, a)
}

func contains(networks []netip.Prefix, a netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}

	return false
}
