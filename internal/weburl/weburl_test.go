package weburl

import (
	"math/rand/v2"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/idna"
)

func matches(t testing.TB, pattern, text string) bool {
	t.Helper()

	p, err := ParsePattern(pattern)
	if err != nil {
		t.Fatalf("pattern %s: %v", pattern, err)
	}

	u, err := Parse(text)
	return err == nil && p.Matches(u)
}

// spellings are texts after https:// that a browser reads otherwise than they look.
var spellings = []string{
	"evil。com?.example.com/x", "evil．com?.example.com", "evil｡com?.example.com", "1572395042?.example.com",
	"0x5DB8D822?.example.com", "0135.0270.0330.042?.example.com", "93.184.216.34?.example.com", "127.1?.example.com",
	"0x5d.0xb8.0xd8.0x22?.example.com", "93.12113954?.example.com", "evil%2ecom?.example.com",
	"evil.com?.example.com/x", "evil.com#.example.com", `evil.com\.example.com`, "evil.com\t?.example.com",
	"evil.com/.example.com/", "evil.com%2f.example.com/", "evil.com%00.example.com/", "evil.com@shop.example.com/",
	"shop.example.com@evil.com/", "evil.com:80@shop.example.com/", "evil.com:443?.example.com",
	"evil.com:.example.com/", "evil.com%5c.example.com/", "shop.example.com.evil.com/", "evilexample.com/",
	"evil。com／.example.com/", "evil。com＃.example.com/", "evil。com？.example.com/", "evil。com＠x.example.com/",
	"ｅvil.example.com/", "shop.example.com。/", "shop.example.com./", ".example.com/", "..example.com/",
	"shop..example.com/", "xn--evil-.example.com/", "xn--a.example.com/", "a.b.example.com/", "example.com/",
	"shop.example。com/", "shop\u00ad.example.com/", "shop\n.example.com/", " shop.example.com/",
	"shop.example.com:99999/", "shop.example.com:0x50/", "shop.example.com:8080/", "[::1].example.com/",
	"shop.example.com/../x", "shop.example.com/%2e%2E/x", "shop.example.com\x00/", "shop.example.com/\ufeff",
}

func TestHostsAreReadAsBrowsersDo(t *testing.T) {
	t.Parallel()

	const pattern = "https://*.example.com/**"
	for _, spelling := range spellings {
		for _, begin := range []string{"https://", "HTTPS://", "https:/", "https:", "https:///", `https:\\`, "//", ""} {
			if text := begin + spelling; matches(t, pattern, text) {
				t.Errorf("%s matches %q", pattern, text)
			}
		}
	}

	for pattern, texts := range map[string][]string{ // whose lower case in Go is ASCII
		"https://site.example.com/**": {
			"https://sİte.example.com/", "HTTPS://SİTE.example.com/", "https://ſite.example.com/",
		},
		"https://*.kiosk.example.com/*": {"https://a.\u212aiosk.example.com/", "https://a.kİosk.example.com/"},
		"com.kiosk://**":                {"com.\u212aiosk://x", "com.kİosk://x"},
	} {
		for _, text := range texts {
			if matches(t, pattern, text) {
				t.Errorf("%s matches %q", pattern, text)
			}
		}
	}

	for _, text := range []string{"https://shop.example.com/", "HTTPS://SHOP.example.com/x?y=%E3%80%82#z",
		"https://shop.example.com:443/a.b/c", "https://xn--bcher-kva.example.com/é", "https://a_b.example.com/x/...",
	} {
		if !matches(t, pattern, text) {
			t.Errorf("%s does not match %q", pattern, text)
		}
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"https://*-team.vercel.app/**", "https://app-git-main-team.vercel.app/x", true},
		{"https://*-team.vercel.app/**", "https://evil.com-team.vercel.app/x", false},
		{"https://**.example.com/*", "https://a.b.example.com/x", true},
		{"https://**.example.com/*", "https://a.b.example.com/x/y", false},
		{"https://example.com**", "https://example.com/x", true},
		{"https://example.com**", "https://example.com.evil.com/x", false},
		{"https://example.com*", "https://example.com.evil.com", false},
		{"https://**", "https://any.org:8443/x", true},
		{"https://**", "https://10.0.0.7/x", false},
		{"http://localhost:*/x", "http://localhost:5173/x", true},
		{"http://localhost:**", "http://localhost:5173/y/z", true},
		{"http://localhost:3000", "http://localhost:3000", true},
		{"http://localhost:3000", "http://localhost:30001", false},
		{"http*://localhost:3000/**", "https://localhost:3000/", true},
		{"*://localhost:3000/**", "app://localhost:3000/", false},
		{"*://**", "javascript://x/%0aalert(1)", false},
		{"http://127.0.0.1:*/**", "http://127.0.0.1:8080/x", true},
		{"http://127.0.0.*/**", "http://127.0.0.1/x", false},
		{"http://[::1]:3000/*", "http://[::1]:3000/x", true},
		{"http://[::1]:3000/*", "http://[0::1]:3000/x", false},
		{"https://[ab].example.org/", "https://b.example.org/", true},
		{"https://[!a].example.org/", "https://b.example.org/", true},
		{"https://[!a].example.org/", "https://..example.org/", false},
		{"https://{a,b{1,2}}.example.org/?", "https://b2.example.org/z", true},
		{"https://{a,b{1,2}}.example.org/?", "https://b3.example.org/z", false},
		{"{https://a.org,app://**}/x", "https://a.org/x", true},
		{"https://bücher.example/**", "https://xn--bcher-kva.example/x", true},
		{"https://bücher.example/**", "https://bücher.example/x", false},
		{"https://Example.com/Ab", "https://example.COM/Ab", true},
		{"https://example.com/Ab", "https://example.com/ab", false},
		{"https://example.com/é*", "https://example.com/éa", true},
		{"https://example.com/a\\*", "https://example.com/a*", true},
		{"https://example.com/a\\*", "https://example.com/ab", false},
		{"https://example.com/cb?x=*", "https://example.com/cb?x=1", true},
		{"com.app://callback", "com.app://callback", true},
		{"com.app://callback/*", "com.app://callback/x", true},
		{"com.app://callback", "com.app://callback.evil", false},
		{"com.app://*", "com.app://user@evil", false},
		{"myapp://**", "myapp://callback/x?y=1", true},
		{"myapp:/**", "myapp:/callback", true},
		{"exp://*.*.*.*:*/--/**", "exp://192.168.1.5:8081/--/x", true},
		{"exp://**", "exp://u.expo.dev/x", true},
		{"myapp://*", "myapp://in?a=b", true},
		{"myapp://*", "myapp://in/b", false},
		{"http://localhost:*", "http://localhost:3000?a=b", true},
		{"https://*.example.com", "https://shop.example.com?a=b", false},
		{"https://example.com*", "https://example.com?a=b", true},
		{"https://example.com/#/cb", "https://example.com/#/cb", true},
		{"https://example.com#x.evil.com/**", "https://evil.com/", false},
		{"myapp://**", "myapp2://callback", false},
		{"https://a.org/**", "/relative", false},
		{"https://a.org/**", "//a.org/x", false},
	} {
		if got := matches(t, tt.pattern, tt.text); got != tt.want {
			t.Errorf("%s matches %q: got %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
	}

	for _, bad := range []string{"", "example.com", "javascript:**", "https://[a/", "https://{a,b/", "https:**",
		"https://user@example.com/", "https://[!].a/", strings.Repeat("{a,b}", 7) + "://x"} {
		if _, err := ParsePattern(bad); err == nil {
			t.Errorf("pattern %q is accepted", bad)
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"https://App.example.com:443/x": "https://app.example.com", "http://localhost:3000": "http://localhost:3000",
		"http://[::1]:80/": "http://[::1]", "https://bücher.example/start": "https://xn--bcher-kva.example",
	} {
		u, err := ParseSite(text)
		if err != nil || u.Origin() != want {
			t.Errorf("%s: got %s, %v, want %s", text, u.Origin(), err, want)
		}
	}

	for _, bad := range []string{"app://x", "https://", "https://u@a.org", "ftp://a.org", "https://2130706433/",
		"https://bü@a/"} {
		if u, err := ParseSite(bad); err == nil {
			t.Errorf("%s: got %+v", bad, u)
		}
	}
}

// TestMatchedHosts joins fragments of addresses at random: the host of what a pattern matches is,
// as browsers read it, one of the pattern's.
func TestMatchedHosts(t *testing.T) {
	t.Parallel()

	fragments := []string{"https:", "http:", "app:", "//", "/", `\`, "?", "#", "@", ":", ".", "。", "．", "｡", "%2e",
		"%2f", "evil.com", "shop", ".example.com", "example.com", "1572395042", "0x7f", "127.1", "443", "80",
		"[", "]", "::1", ".sİte.example.com",
		"\t", "\n", " ", "\u00ad", "\u200b", "／", "xn--", "-", "_", "ß", "İ", "\u212a", "*",
		"%", "\x00", ";", ",", "..", "%2E%2e"}
	patterns := []string{"https://*.example.com/**", "https://example.com**", "https://**.example.com/**",
		"http{,s}://*-shop.example.com*/**", "https://shop?example.com/**", "https://[!x]hop.example.com:*/**",
		"https://**.site.example.com/**"}
	compiled := make([]Pattern, len(patterns))
	for i, pattern := range patterns {
		var err error
		if compiled[i], err = ParsePattern(pattern); err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
	}

	random, accepted := rand.New(rand.NewPCG(1, 2)), 0
	for range 200_000 {
		text := ""
		if random.IntN(4) > 0 {
			text = "https://" + map[bool]string{true: "shop.example.com"}[random.IntN(2) > 0]
		}
		for range 1 + random.IntN(6) {
			text += fragments[random.IntN(len(fragments))]
		}

		u, err := Parse(text)
		if err != nil {
			continue
		}

		for i, p := range compiled {
			if !p.Matches(u) {
				continue
			}

			accepted++
			host, ok := browserHost(text)
			if !ok || (host != "example.com" && !strings.HasSuffix(host, ".example.com")) || host != u.Host {
				t.Errorf("%s matches %q, whose host is %q, %v", patterns[i], text, host, ok)
			}
			if plain, err := url.Parse(text); err != nil || !strings.EqualFold(plain.Hostname(), host) {
				t.Errorf("package url reads the host of %q otherwise: %v, %v", text, plain, err)
			}
		}
	}

	if accepted < 1000 {
		t.Errorf("got %d matches, want enough to prove anything", accepted)
	}
}

// browserHost returns the host of an address of the web by the URL standard of the WHATWG, written
// for this test only.
func browserHost(text string) (string, bool) {
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	text = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(text)
	scheme, after, _ := strings.Cut(text, ":")
	if scheme = strings.ToLower(scheme); scheme != "http" && scheme != "https" {
		return "", false
	}

	after = strings.TrimLeft(after, `/\`)
	if i := strings.IndexAny(after, `/\?#`); i >= 0 {
		after = after[:i]
	}
	after = after[strings.LastIndexByte(after, '@')+1:]
	if i := strings.LastIndexByte(after, ':'); i >= 0 && !strings.HasSuffix(after, "]") {
		after = after[:i]
	}

	decoded, err := url.PathUnescape(after)
	if err != nil {
		return "", false
	}

	browsers := idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false),
		idna.CheckHyphens(false))
	host, err := browsers.ToASCII(decoded)
	if err != nil || strings.ContainsAny(host, "\x00\t\n\r #/<>?@[\\]^|%:") {
		return "", false
	}

	return asIPv4(host), true
}

// asIPv4 returns the host, or the address that browsers read in it.
func asIPv4(host string) string {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(labels) > 4 {
		return host
	}

	sum, numbers := uint64(0), true
	for i, label := range labels {
		n, err := strconv.ParseUint(label, 0, 32)
		numbers = numbers && err == nil
		if i < len(labels)-1 {
			sum += n << (24 - 8*i)
		} else {
			sum += n
		}
	}
	if !numbers {
		return host
	}

	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}).String()
}

func FuzzParse(f *testing.F) {
	for _, spelling := range spellings {
		f.Add("https://" + spelling)
	}

	f.Fuzz(func(t *testing.T, text string) {
		u, err := Parse(text)
		if err != nil || !u.IsWeb() {
			return
		}

		plain, err := url.Parse(text)
		if err != nil || (u.Host[0] != '[' && !strings.EqualFold(plain.Hostname(), u.Host)) {
			t.Errorf("package url reads %q otherwise than %+v: %v, %v", text, u, plain, err)
		}
		if host, ok := browserHost(text); u.Host[0] != '[' && (!ok || host != u.Host) {
			t.Errorf("browsers read %q otherwise than %+v: %s, %v", text, u, host, ok)
		}
	})
}
