package mail

import (
	netmail "net/mail"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// MaxAddress is the maximum number of bytes of an address.
const MaxAddress = 254

// maxLocal is the maximum number of bytes before the @.
const maxLocal = 64

// CleanAddress returns an address without surrounding white space. It reports false unless the text
// is a bare address, and its normalized form is one as well.
func CleanAddress(s string) (string, bool) {
	s = strings.TrimSpace(s)
	plain := norm.NFKC.String(s)
	local, domain, _ := strings.Cut(plain, "@")

	a, err := netmail.ParseAddress(plain)
	ok := err == nil && a.Address == plain && len(plain) <= MaxAddress && len(local) <= maxLocal &&
		!strings.Contains(domain, "@") && !strings.HasPrefix(domain, "-") && !strings.ContainsFunc(plain, notInAddress)

	return s, ok
}

// notInAddress reports whether a character is not allowed in addresses. Invisible characters would
// allow look-alike addresses.
func notInAddress(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(` "<>()[]`, r) }
