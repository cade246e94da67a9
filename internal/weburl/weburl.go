// Package weburl reads page and app addresses as browsers do, and matches them with patterns.
//
// Browsers and package net/url read some texts differently: an ideographic full stop is a dot to a
// browser, 0x7f.1 is 127.0.0.1, and a backslash is a slash. Checking one reading says nothing
// about the other. So [Parse] accepts only texts that both read alike.
package weburl

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// URL is an address without its fragment.
type URL struct {
	Scheme string // in lower case
	Host   string // domain in ASCII and lower case, or IP address; "" for an app
	Port   string // given or default one; "" for an app
	Rest   string // path and query, or all after an app's scheme; percent-encoded beyond ASCII

	numeric bool // Host is an IP address
}

// runnable are the schemes for addresses that a browser runs, or reads from the user's machine.
var runnable = map[string]bool{"javascript": true, "data": true, "vbscript": true, "file": true, "blob": true,
	"filesystem": true, "about": true, "view-source": true, "ftp": true, "ws": true, "wss": true}

// defaultPorts maps web schemes to default ports.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// Parse returns an absolute address. It fails for a scheme that is no page and no app, for a user,
// and for a text that browsers rewrite: with white space, control characters, backslashes, dot
// segments, or a host that is neither ASCII nor in its canonical form.
func Parse(text string) (URL, error) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, '\\') || strings.ContainsFunc(text, isInvisible) {
		return URL{}, errors.New("has white space, control characters or backslashes")
	}

	scheme, after, ok := strings.Cut(text, ":")
	scheme = lowerASCII(scheme)
	if !ok || !isScheme(scheme) {
		return URL{}, errors.New("has no scheme")
	}
	if runnable[scheme] {
		return URL{}, fmt.Errorf("has the scheme %s", scheme)
	}

	after, _, _ = strings.Cut(after, "#")
	authority, rest, web := "", after, defaultPorts[scheme] != ""
	if hierarchy, cut := strings.CutPrefix(after, "//"); cut {
		end := len(hierarchy)
		if i := strings.IndexAny(hierarchy, "/?"); i >= 0 {
			end = i
		}
		authority, rest = hierarchy[:end], hierarchy[end:]
	} else if web {
		return URL{}, errors.New("has no host")
	}

	if hasDotSegment(rest) {
		return URL{}, errors.New("has segments of dots")
	}

	u := URL{Scheme: scheme, Rest: encode(rest)}
	if !web {
		if strings.ContainsFunc(authority, notInApp) {
			return URL{}, errors.New("has characters in the host that are not allowed there")
		}

		u.Rest = encode(after)
		return u, checkPlain(text)
	}

	if err := u.parseHost(authority); err != nil {
		return URL{}, err
	}

	return u, checkPlain(text)
}

// checkPlain fails for an escape that package url can't read, since redirects go through it.
func checkPlain(text string) error {
	if _, err := url.Parse(text); err != nil {
		return errors.New("has an invalid escape")
	}
	return nil
}

// parseHost splits the host and the port in a web address.
func (u *URL) parseHost(authority string) error {
	host, port := splitPort(authority)
	if u.Port = port; port == "" {
		u.Port = defaultPorts[u.Scheme]
	}
	if n, err := strconv.ParseUint(u.Port, 10, 16); err != nil || strconv.FormatUint(n, 10) != u.Port {
		return errors.New("has no valid port")
	}
	if strings.HasSuffix(authority, ":") {
		return errors.New("has an empty port")
	}

	u.Host = lowerASCII(host)
	if inner, ok := strings.CutPrefix(u.Host, "["); ok {
		address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if u.numeric = true; err != nil || "["+address.String()+"]" != u.Host || address.Zone() != "" {
			return errors.New("has an address of IPv6 that is not in its canonical form")
		}
		return nil
	}

	labels := strings.Split(u.Host, ".")
	for _, label := range labels {
		if !isLabel(label) {
			return errors.New("has a host that is no domain in ASCII")
		}
	}

	if !isNumber(labels[len(labels)-1]) {
		return nil
	}

	address, err := netip.ParseAddr(u.Host)
	if u.numeric = true; err != nil || address.String() != u.Host {
		return errors.New("has an address of IPv4 that is not in its canonical form")
	}

	return nil
}

// IsWeb reports whether the scheme is http or https.
func (u URL) IsWeb() bool { return defaultPorts[u.Scheme] != "" }

// Origin returns a web address's origin, as browsers write it.
func (u URL) Origin() string {
	if u.Port == defaultPorts[u.Scheme] {
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + "://" + u.Host + ":" + u.Port
}

// ParseSite is [Parse] for a web address whose host may be beyond ASCII, as people write it in
// settings.
func ParseSite(text string) (URL, error) {
	scheme, after, _ := strings.Cut(text, "://")
	host, rest := after, ""
	if i := strings.IndexAny(after, ":/?#"); i >= 0 {
		host, rest = after[:i], after[i:]
	}

	if !isASCII(host) {
		var err error
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return URL{}, errors.New("has a host that is no domain")
		}
	}

	u, err := Parse(scheme + "://" + host + rest)
	if err == nil && !u.IsWeb() {
		err = errors.New("must begin with http:// or https://")
	}

	return u, err
}

// splitPort cuts the port from a host.
func splitPort(authority string) (host, port string) {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.HasSuffix(authority, "]") {
		return authority, ""
	}

	return authority[:i], authority[i+1:]
}

// isNumber reports whether browsers read a host with this last label as an IPv4 address.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}

	return strings.Trim(label, "0123456789") == ""
}

// isLabel reports whether a text is a domain label. A Punycode label has a distinct Unicode form.
func isLabel(label string) bool {
	if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return false
	}
	if !strings.HasPrefix(label, "xn--") {
		return true
	}

	unicode, err := idna.Lookup.ToUnicode(label)
	if err != nil || isASCII(unicode) {
		return false
	}

	ascii, err := idna.Lookup.ToASCII(unicode)
	return err == nil && ascii == label
}

func isScheme(s string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// lowerASCII returns a text with ASCII capital letters in lower case. Lower case beyond ASCII can
// be ASCII: İ becomes i, which browsers read as another host.
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

// isInvisible reports whether browsers drop a character, or end the text with it.
func isInvisible(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }

// notInApp reports whether a character is not allowed in an app address's host.
func notInApp(r rune) bool { return r > unicode.MaxASCII || strings.ContainsRune("@<>^|%[]\"`{}", r) }

// hasDotSegment reports whether browsers remove segments from a path.
func hasDotSegment(rest string) bool {
	path, _, _ := strings.Cut(rest, "?")
	for segment := range strings.SplitSeq(path, "/") {
		plain := strings.ReplaceAll(strings.ToLower(segment), "%2e", ".")
		if plain == "." || plain == ".." {
			return true
		}
	}

	return false
}

// encode percent-encodes characters beyond ASCII.
func encode(s string) string {
	if isASCII(s) {
		return s
	}

	var b strings.Builder
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}

	return b.String()
}
