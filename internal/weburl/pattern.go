package weburl

import (
	"errors"
	"net/netip"
	"regexp"
	"strings"

	"golang.org/x/net/idna"
)

// maxAlternatives bounds the alternatives in a pattern with braces.
const maxAlternatives = 64

// Pattern matches addresses part by part: scheme, host, port, and path with query. An app's address
// has a scheme and a rest.
//
// * stands for characters except . and /, ** for any, ? for one except . and /, [abc] and [!abc]
// for one in a class, {a,b} for alternatives, \ for the next character itself. In a host, * stays
// within a label, and ** stands for whole labels; at the end of a host or port, ** stands for every
// path as well. A scheme with wildcards stands for http and https, and an IP address needs a host
// without.
type Pattern struct {
	alternatives []parts
}

// parts are the parts in a pattern without braces.
type parts struct {
	scheme, host, port, rest *regexp.Regexp // host is nil for an app

	literalHost bool
}

// ParsePattern parses a pattern.
func ParsePattern(text string) (Pattern, error) {
	texts, err := expand(text)
	if err != nil {
		return Pattern{}, err
	}

	p := Pattern{alternatives: make([]parts, len(texts))}
	for i, alternative := range texts {
		if p.alternatives[i], err = parseParts(alternative); err != nil {
			return Pattern{}, err
		}
	}

	return p, nil
}

// Matches reports whether the pattern matches an address.
func (p Pattern) Matches(u URL) bool {
	for _, a := range p.alternatives {
		if a.matches(u) {
			return true
		}
	}

	return false
}

func (p parts) matches(u URL) bool {
	switch {
	case u.IsWeb() != (p.host != nil), !p.scheme.MatchString(u.Scheme), u.numeric && !p.literalHost:
		return false
	case p.host == nil:
		return p.rest.MatchString(u.Rest)
	case p.port == nil && u.Port != defaultPorts[u.Scheme], p.port != nil && !p.port.MatchString(u.Port):
		return false
	}

	return p.host.MatchString(u.Host) && p.rest.MatchString(u.Rest)
}

// parseParts splits a pattern without braces.
func parseParts(text string) (p parts, err error) {
	scheme, after, ok := strings.Cut(text, ":")
	if !ok {
		return p, errors.New("must have a scheme")
	}

	scheme = lowerASCII(scheme)
	anyScheme := strings.ContainsAny(scheme, `*?[\`)
	if !anyScheme && (!isScheme(scheme) || runnable[scheme]) {
		return p, errors.New("must have the scheme of a page or of an app")
	}

	if p.scheme, err = compile(scheme, textGlob); err != nil {
		return p, err
	}

	rest, _, _ := strings.Cut(after, "#") // a redirect replaces the fragment
	if anyScheme || defaultPorts[scheme] != "" {
		if rest, err = p.parseHost(rest); err != nil {
			return p, err
		}
	}

	p.rest, err = compile(rest, textGlob)
	return p, err
}

// parseHost compiles a pattern's host and port, and returns the rest. A wildcard that ends the host
// or port stands for a part of the rest as well.
func (p *parts) parseHost(after string) (rest string, err error) {
	after, ok := strings.CutPrefix(after, "//")
	if !ok {
		return "", errors.New("must have a host")
	}

	end := authorityEnd(after)
	authority, rest := after[:end], after[end:]
	if strings.Contains(authority, "@") {
		return "", errors.New("must have no user")
	}

	before, all := strings.CutSuffix(authority, "**")
	switch {
	case all && before == "":
		authority, rest = "**:**", "**"+rest
	case all && !strings.HasSuffix(before, ".") && !strings.HasSuffix(before, ":"):
		authority, rest = before, "**"+rest
	case all:
		rest = "**" + rest
	case strings.HasSuffix(authority, "*") && rest == "":
		rest = "*"
	}

	return rest, p.compileHost(authority)
}

// authorityEnd returns where a pattern's host and port end; ? is a wildcard in them.
func authorityEnd(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '/':
			return i
		}
	}

	return len(text)
}

// compileHost compiles a pattern's host and port.
func (p *parts) compileHost(authority string) (err error) {
	host, port := splitPort(authority)
	if port != "" {
		if p.port, err = compile(port, textGlob); err != nil {
			return err
		}
	}

	host = lowerASCII(host)
	p.literalHost = !strings.ContainsAny(host, `*?\`) &&
		(!strings.Contains(host, "[") || isIPv6(host)) // else a class
	if p.literalHost {
		if !isASCII(host) {
			if host, err = idna.Lookup.ToASCII(host); err != nil {
				return errors.New("must have a host that is a domain")
			}
		}

		p.host, err = regexp.Compile("^" + regexp.QuoteMeta(host) + "$")
		return err
	}

	p.host, err = compile(host, hostGlob)
	return err
}

func isIPv6(host string) bool {
	inner := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	address, err := netip.ParseAddr(inner)

	return err == nil && address.Is6() && len(inner)+2 == len(host)
}

// glob has the expressions for the wildcards in a part.
type glob struct{ many, one, all string }

var (
	textGlob = glob{many: `[^./]*`, one: `[^./]`, all: `.*`}
	hostGlob = glob{many: `[a-z0-9_-]*`, one: `[a-z0-9_-]`, all: `[a-z0-9_-]+(?:\.[a-z0-9_-]+)*`}
)

// compile translates a pattern part.
func compile(pattern string, g glob) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("^(?s:")

	text := []rune(pattern)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '*' && i+1 < len(text) && text[i+1] == '*':
			b.WriteString(g.all)
			i++
		case c == '*':
			b.WriteString(g.many)
		case c == '?':
			b.WriteString(g.one)
		case c == '[':
			class, length := parseClass(text[i:], g)
			if length == 0 {
				return nil, errors.New("must have an end of each class")
			}

			b.WriteString(class)
			i += length - 1
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteString(regexp.QuoteMeta(encode(string(text[i]))))
		default:
			b.WriteString(regexp.QuoteMeta(encode(string(c))))
		}
	}

	b.WriteString(")$")
	return regexp.Compile(b.String())
}

// parseClass returns the expression for the class that begins a text, and the class's length, 0 if
// it has no end. A class never matches the part's separators.
func parseClass(text []rune, g glob) (expression string, length int) {
	end := strings.IndexRune(string(text), ']')
	if end < 0 {
		return "", 0
	}

	class := string(text)[1:end]
	length = len([]rune(class)) + 2
	class, isNegated := strings.CutPrefix(class, "!")
	if class == "" {
		return "", 0
	}

	class = strings.NewReplacer(`\`, `\\`, "[", `\[`, "^", `\^`).Replace(class)
	switch {
	case !isNegated:
		return "[" + class + "]", length
	case g == hostGlob:
		return "[^" + class + "./:]", length
	}

	return "[^" + class + "]", length
}

// expand returns a pattern's alternatives, which have no braces.
func expand(text string) ([]string, error) {
	begin, depth := -1, 0
	var commas []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			if depth++; begin < 0 {
				begin = i
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth == 0 {
				continue
			}
			if depth--; depth == 0 {
				return expandAt(text, begin, append(commas, i))
			}
		}
	}

	if depth > 0 {
		return nil, errors.New("must have an end of each alternative")
	}

	return []string{text}, nil
}

// expandAt expands the alternatives between the brace at begin and the last end.
func expandAt(text string, begin int, ends []int) ([]string, error) {
	var all []string
	head, from := text[:begin], begin+1
	for _, end := range ends {
		texts, err := expand(head + text[from:end] + text[ends[len(ends)-1]+1:])
		if err != nil {
			return nil, err
		}

		all, from = append(all, texts...), end+1
		if len(all) > maxAlternatives {
			return nil, errors.New("must have at most 64 alternatives")
		}
	}

	return all, nil
}
