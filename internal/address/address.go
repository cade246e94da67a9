// Package address has the canonical form for e-mail addresses, and the form for mail servers.
//
// An address is canonical if it is normalized by NFKC, the ASCII letters before the @ are in lower
// case, and the domain has IDNA's Unicode form. Lower case beyond ASCII depends on the language: İ
// is no i, and mailboxes that differ in it can belong to different people.
package address

import (
	netmail "net/mail"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// Max is an address's maximum length in bytes.
const Max = 254

// maxLocal is the maximum number of bytes before the @.
const maxLocal = 64

// Clean returns a bare address's canonical form, without surrounding white space. It reports false
// for another text.
func Clean(s string) (string, bool) {
	plain := norm.NFKC.String(strings.TrimSpace(s))
	local, domain, ok := strings.Cut(plain, "@")
	if !ok || len(local) > maxLocal || strings.ContainsFunc(plain, notAllowed) {
		return "", false
	}

	domain, isDomain := cleanDomain(domain)
	plain = lowerASCII(local) + "@" + domain
	wire, sendable := ForServer(plain)
	if !isDomain || !sendable || len(wire) > Max || len(plain) > Max {
		return "", false
	}

	a, err := netmail.ParseAddress(plain)
	return plain, err == nil && a.Name == "" && a.Address == plain
}

// cleanDomain returns a domain in Unicode and lower case.
func cleanDomain(domain string) (string, bool) {
	if strings.HasPrefix(domain, "-") || strings.Contains(domain, "@") {
		return "", false
	}

	lower := lowerASCII(domain)
	if isASCII(lower) && !strings.Contains(lower, "xn--") {
		return lower, true // with names that IDNA does not allow, such as a_b
	}

	ascii, err := idna.Lookup.ToASCII(lower)
	if err != nil {
		return "", false
	}

	name, err := idna.Lookup.ToUnicode(ascii)
	return name, err == nil
}

// Canonical returns an address's canonical form, or the text itself if it is none.
func Canonical(s string) string {
	if clean, ok := Clean(s); ok {
		return clean
	}
	return s
}

// ForServer returns an address with its domain in ASCII, as any mail server takes it. The local
// part keeps its case. It reports false if there is no such form.
func ForServer(s string) (string, bool) {
	plain := norm.NFKC.String(s)
	local, domain, ok := strings.Cut(plain, "@")
	if !ok || isASCII(domain) {
		return plain, ok
	}

	ascii, err := idna.Lookup.ToASCII(domain)
	return local + "@" + ascii, err == nil
}

// NeedsUTF8 reports whether only a mail server with SMTPUTF8 takes an address: one whose local part
// is beyond ASCII.
func NeedsUTF8(address string) bool {
	local, _, _ := strings.Cut(address, "@")
	return !isASCII(local)
}

// Forms returns the forms of a canonical address that former releases have stored: the canonical
// one first, then with its domain in ASCII.
func Forms(canonical string) []string {
	wire, ok := ForServer(canonical)
	if !ok || wire == canonical {
		return []string{canonical}
	}

	return []string{canonical, wire}
}

// lowerASCII returns a text with ASCII capitals in lower case.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// notAllowed reports whether a character is not allowed in addresses. Invisible characters would
// allow look-alike addresses.
func notAllowed(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(` "<>()[]`, r) }
