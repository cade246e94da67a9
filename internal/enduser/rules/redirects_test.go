package rules

import "testing"

func TestRedirect(t *testing.T) {
	t.Parallel()

	s := Settings{SiteURL: "https://app.example.com",
		RedirectURLs: []string{"https://*.example.com/**", "http://localhost:*/x", "myapp://**",
			"http://10.0.0.7/exact", "https://{a,b}.example.org/?"}}
	for to, want := range map[string]bool{
		"https://app.example.com/any?x=1":         true,
		"https://shop.example.com/deep/er":        true,
		"https://a.b.example.com/":                false,
		"https://evil.com/https://x.example.com/": false,
		"https://app.example.com.evil.com/":       false,
		"https://user@shop.example.com/":          false,
		"https://shop.example.com\\@evil.com/":    false,
		"https://evil。com?.example.com/x":         false,
		"https://1572395042?.example.com":         false,
		"http://localhost:5173/x":                 true,
		"http://localhost:5173/y":                 false,
		"myapp://callback/x":                      true,
		"javascript:alert(1)":                     false,
		"//evil.com/":                             false,
		"/relative":                               false,
		"http://10.0.0.7/exact":                   true,
		"http://10.0.0.8/exact":                   false,
		"https://a.example.org/z":                 true,
		"https://c.example.org/z":                 false,
		"":                                        false,
	} {
		wanted := map[bool]string{true: to, false: s.SiteURL}[want]
		if got := s.Redirect(to); got != wanted {
			t.Errorf("Redirect(%q) = %q, want %q", to, got, wanted)
		}
	}
}
