// Package fair shares out bounded capacity: places of workers, connections, bytes of memory.
//
// The unit of fairness is the account, since one account can own any number of projects. A [Pool]
// keeps a reserve for accounts that hold nothing, serves the account that holds least first, and
// bounds its waiting list at the expense of the account that waits most. A pool whose work can be
// cancelled also takes places back from the account that holds most. The same rules apply inside an
// account to its parts.
package fair

import (
	"net/netip"
	"strconv"
)

// Key names the holder of a share.
type Key struct {
	// Account is the account that owns the work, or the network of a caller that no account answers
	// for.
	Account string

	// Part is a project of the account, or a network of strangers in it.
	Part string
}

// In returns the key of a narrower part of k's.
func (k Key) In(part string) Key { return Key{k.Account, k.Part + " " + part} }

// Stranger returns the key of a caller without an account: its IPv4 address, or its IPv6 /48 with
// the /64 as a part.
func Stranger(a netip.Addr) Key {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return Key{Account: "network " + a.String()}
	}

	return Key{"network " + prefix(a, 48), prefix(a, 64)}
}

func prefix(a netip.Addr, bits int) string {
	p, err := a.Prefix(bits)
	if err != nil {
		return a.String() + "/" + strconv.Itoa(bits)
	}

	return p.String()
}
