package enduser

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// Redirect returns the address where a link leads: the requested one if the settings allow it, or
// the site.
func (d *Directory) Redirect(requested string) string {
	if requested != "" && d.allows(requested) {
		return requested
	}
	return d.SiteURL
}

// allows reports whether an address is one of the site's, or matches a pattern of the settings.
// Addresses of numeric hosts but loopback must match a pattern without wildcards.
func (d *Directory) allows(requested string) bool {
	u, err := url.Parse(requested)
	if err != nil || len(requested) > maxURL || u.User != nil || strings.ContainsAny(requested, "\\\r\n\t ") {
		return false
	}

	switch strings.ToLower(u.Scheme) {
	case "", "javascript", "data", "vbscript", "file", "blob":
		return false
	}

	site, err := url.Parse(d.SiteURL)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme == site.Scheme && u.Host == site.Host {
		return true
	}

	address, err := netip.ParseAddr(u.Hostname())
	numeric := err == nil && !address.IsLoopback()

	plain := *u
	plain.Fragment, plain.RawFragment = "", ""
	for _, pattern := range d.RedirectURLs {
		if pattern == requested {
			return true
		}

		compiled, err := compilePattern(pattern)
		if err == nil && !numeric && compiled.MatchString(plain.String()) {
			return true
		}
	}

	return false
}

// compilePattern translates a pattern of addresses: * stands for characters except . and /, ** for
// any, ? for one, [abc] and [!abc] for one of a class, {a,b} for alternatives, \ for the next
// character itself.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("^(?s:")

	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*' && strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^./]*")
		case c == '?':
			b.WriteString("[^./]")
		case c == '[':
			end := strings.IndexByte(pattern[i:], ']')
			if end < 2 || pattern[i:i+end] == "[!" {
				return nil, errors.New("class without an end")
			}

			class := pattern[i+1 : i+end]
			negated := strings.HasPrefix(class, "!")
			class = strings.TrimPrefix(class, "!")
			b.WriteString("[" + map[bool]string{true: "^"}[negated] + classText(class) + "]")
			i += end
		case c == '{':
			depth++
			b.WriteString("(?:")
		case c == '}' && depth > 0:
			depth--
			b.WriteString(")")
		case c == ',' && depth > 0:
			b.WriteString("|")
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}

	b.WriteString(")$")
	if depth != 0 {
		return nil, errors.New("alternatives without an end")
	}

	return regexp.Compile(b.String())
}

// classText returns the characters of a class, with ranges, for a regular expression.
func classText(class string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "^", `\^`).Replace(class)
}
