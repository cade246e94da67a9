// Package fair shares out bounded capacity: workers, connections, memory.
//
// The unit of fairness is the account, since one account can own many projects. A [Pool] keeps a
// reserve for accounts that hold nothing, serves the account that holds least first, and drops a
// waiter of the account that waits most when its queue is full. A pool whose work can be cancelled
// also takes places back from the account that holds most. The same rules apply to the parts within
// an account.
package fair

import (
	"net/netip"
	"strconv"
)

// Key identifies the holder of a share.
type Key struct {
	// Account owns the work. For a caller without an account it is the caller's network.
	Account string

	// Part is one of the account's projects, or a narrower network.
	Part string
}

// In returns the key for a part of k's part.
func (k Key) In(part string) Key { return Key{k.Account, k.Part + " " + part} }

// Stranger returns the key for a caller without an account: its IPv4 address, or its IPv6 /48 with
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
