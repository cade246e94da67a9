package rules

import (
	"strings"
	"testing"
)

func TestRelyingParty(t *testing.T) {
	t.Parallel()

	const site = "https://app.example.com"
	for name, tt := range map[string]struct {
		site string
		w    WebAuthn
		ok   bool
	}{
		"site":                {site, WebAuthn{Passkeys: true}, true},
		"local site":          {"http://localhost:3000", WebAuthn{Passkeys: true}, true},
		"parent domain":       {site, WebAuthn{Passkeys: true, RPID: "example.com"}, true},
		"origins":             {site, WebAuthn{RPID: "example.com", Origins: []string{site, "https://www.example.com:8443"}}, true},
		"app":                 {site, WebAuthn{Passkeys: true, Origins: []string{"android:apk-key-hash:x"}}, true},
		"address":             {"http://10.0.0.7", WebAuthn{Passkeys: true}, false},
		"address, off":        {"http://10.0.0.7", WebAuthn{}, true},
		"other domain":        {site, WebAuthn{Passkeys: true, RPID: "example.org"}, false},
		"suffix of a name":    {site, WebAuthn{RPID: "example.com", Origins: []string{"https://evilexample.com"}}, false},
		"top-level domain":    {site, WebAuthn{Passkeys: true, RPID: "com"}, false},
		"origin with a path":  {site, WebAuthn{Passkeys: true, Origins: []string{site + "/"}}, false},
		"origin of elsewhere": {site, WebAuthn{Passkeys: true, Origins: []string{"https://evil.example"}}, false},
		"long name":           {site, WebAuthn{Passkeys: true, RPName: strings.Repeat("x", 101)}, false},
		"many origins":        {site, WebAuthn{Passkeys: true, Origins: make([]string, 21)}, false},
	} {
		s := Settings{SiteURL: tt.site, WebAuthn: tt.w}
		if err := s.WebAuthn.check(s.SiteURL); (err == nil) != tt.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}

	s := Settings{SiteURL: site + "/start"}
	if rp := s.RelyingParty(); rp.ID != "app.example.com" || len(rp.Origins) != 1 || rp.Origins[0] != site {
		t.Errorf("got the relying party %v", rp)
	}
}
