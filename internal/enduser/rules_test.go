package enduser

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/token"
)

func TestRedirect(t *testing.T) {
	t.Parallel()

	d := &Directory{ProjectConfig: ProjectConfig{Settings: Settings{SiteURL: "https://app.example.com",
		RedirectURLs: []string{"https://*.example.com/**", "http://localhost:*/x", "myapp://**",
			"http://10.0.0.7/exact", "https://{a,b}.example.org/?"}}}}
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
		wanted := map[bool]string{true: to, false: d.SiteURL}[want]
		if got := d.Redirect(to); got != wanted {
			t.Errorf("Redirect(%q) = %q, want %q", to, got, wanted)
		}
	}
}

func TestMailText(t *testing.T) {
	t.Parallel()

	m := MailText{Subject: "For {{ .Email }}", HTML: `<a href="{{ .ConfirmationURL }}">{{.Data.name}}</a>{{ .Data.none.x }}`,
		Text: "{{ .Token }} {{ .Nothing }}"}
	subject, html, text := m.render(map[string]string{"Email": "a@b.c\r\nBcc: x",
		"ConfirmationURL": `https://x/?a=1&b="`,
		"Token":           "123456"}, json.RawMessage(`{"name":"<b>{{ .Token }}</b>"}`))
	if subject != "For a@b.cBcc: x" || text != "123456 " ||
		html != `<a href="https://x/?a=1&amp;b=%22">&lt;b&gt;{{ .Token }}&lt;/b&gt;</a>` {
		t.Errorf("got %q, %q, %q", subject, html, text)
	}

	for text, want := range map[string]string{"{{ .Token }} {{.Data.a_b.c}}": "", "{{ .Secret }}": "{{ .Secret }}",
		"{{ .Token.x }}": "{{ .Token.x }}", "{{ if }}": "{{ if }}", "{{": "{{", "no variables": ""} {
		if got := unknownVariable(text); got != want {
			t.Errorf("unknownVariable(%q) = %q, want %q", text, got, want)
		}
	}

	err := MailText{Subject: "x", Text: "{{ .Code }}"}.check()
	if err == nil || !strings.Contains(err.Error(), "{{ .Token }}") {
		t.Errorf("got %v, want the known variables", err)
	}

	email := map[string]string{"Email": strings.Repeat("x", 1000)}
	long := fill(strings.Repeat("{{ .Email }}", 1000), lookUp(email, nil))
	if len(long) > maxFilled {
		t.Errorf("a filled text has %d bytes, want at most %d", len(long), maxFilled)
	}
}

func TestChallenge(t *testing.T) {
	t.Parallel()

	good := strings.Repeat("a", 43)
	for c, want := range map[Challenge]bool{{}: true, {good, "s256"}: true, {good, "plain"}: true, {good, ""}: false,
		{"", "s256"}: false, {good[1:], "s256"}: false, {good + "!", "s256"}: false, {good, "md5"}: false} {
		if got := c.check() == nil; got != want {
			t.Errorf("%+v is accepted: %v, want %v", c, got, want)
		}
	}

	// from RFC 7636, appendix B
	f := flowState{CodeChallengeMethod: "s256", CodeChallenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}
	if !f.matches("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") || f.matches("other") {
		t.Error("a verifier does not match its challenge, or another one does")
	}
}

func TestMergeMetadata(t *testing.T) {
	t.Parallel()

	got, err := mergeMetadata("data", json.RawMessage(`{"a":1,"b":2}`), json.RawMessage(`{"b":null,"c":{"d":[]}}`))
	if err != nil || string(got) != `{"a":1,"c":{"d":[]}}` {
		t.Errorf("got %s, %v", got, err)
	}

	for _, bad := range []string{`[]`, `1`, `{"a":"` + strings.Repeat("x", maxMetadata) + `"}`, `{"a":"\u0000"}`} {
		if got, err := mergeMetadata("data", nil, json.RawMessage(bad)); err == nil {
			t.Errorf("%.20s: got %s, want an error", bad, got)
		}
	}
}

// TestQRCode checks the picture of the longest text, and the finder patterns of a short one.
func TestQRCode(t *testing.T) {
	t.Parallel()

	longest := token.TOTPURL(token.NewTOTPSecret(), strings.Repeat("ü", maxFriendlyName/2),
		strings.Repeat("ü", address.Max/2))
	for _, text := range []string{"otpauth://totp/a:b", longest} {
		svg, err := qrCode(text)
		if err != nil {
			t.Fatalf("%d bytes: %v", len(text), err)
		}

		var picture struct {
			Size  string `xml:"viewBox,attr"`
			Paths []struct {
				Modules string `xml:"d,attr"`
			} `xml:"path"`
		}
		if err := xml.Unmarshal([]byte(svg), &picture); err != nil || len(picture.Paths) != 2 {
			t.Fatalf("%d bytes: %v: %.300s", len(text), err, svg)
		}
		if strings.ContainsAny(svg, "#%") {
			t.Errorf("%d bytes: the picture does not fit a data URL: %.300s", len(text), svg)
		}
		if !strings.HasPrefix(picture.Paths[1].Modules, "M4 4h7v1h-7z") {
			t.Errorf("%d bytes: no finder pattern in the corner: %.300s", len(text), picture.Paths[1].Modules)
		}
	}
}

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
		if err := s.checkWebAuthn(); (err == nil) != tt.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}

	s := Settings{SiteURL: site + "/start"}
	if rp := s.relyingParty(); rp.ID != "app.example.com" || len(rp.Origins) != 1 || rp.Origins[0] != site {
		t.Errorf("got the relying party %v", rp)
	}
}
