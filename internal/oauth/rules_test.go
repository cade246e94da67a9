package oauth

import (
	"net/url"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
)

func TestCheckRedirectURI(t *testing.T) {
	t.Parallel()

	for text, valid := range map[string]bool{
		"https://a.example.com/cb":             true,
		"https://a.example.com/cb?x=1":         true,
		"http://localhost:3000/cb":             true,
		"http://127.0.0.1/cb":                  true,
		"http://[::1]:7/cb":                    true,
		"com.example.app:/cb":                  true,
		"myapp://callback":                     true,
		"http://a.example.com/cb":              false,
		"http://localhost.evil.com/cb":         false,
		"http://127.0.0.1.evil.com/cb":         false,
		"https://a.example.com/#":              false,
		"https://u:p@a.example.com/":           false,
		"https://*.example.com/":               false,
		"https://bücher.example/":              false,
		"https://a.example.com/\n":             false,
		"https://a.example.com\\@b.com/":       false,
		"JavaScript:alert(1)":                  false,
		"data:text/html,x":                     false,
		"myapp:cb":                             false,
		"/cb":                                  false,
		"https://a.com%EF%BC%8Fx.example.com/": false,
		"https://a.com%E3%80%82example.com/cb": false,
		"https://1572395042/cb":                false,
		"https://a.example.com/../cb":          false,
		"view-source://a.example.com/":         false,
		"filesystem://a.example.com/":          false,
		"myapp://u@b/cb":                       false,
		"myapp:///cb":                          false,
		"":                                     false,
		"https://" + strings.Repeat("a", 2100): false,
	} {
		if rule := checkRedirectURI(text); (rule == "") != valid {
			t.Errorf("%.60q: got the rule %q, want valid: %v", text, rule, valid)
		}
	}
}

func TestClientName(t *testing.T) {
	t.Parallel()

	for name, valid := range map[string]bool{
		"":                             true,
		"Shop":                         true,
		"<b>Müller & Söhne</b> 🏪":      true,
		"متجر":                         true,
		"Shop\n\nVerified by Example.": false,
		"Shop\r":                       false,
		"Shop\t":                       false,
		"Shop\u0085":                   false,
		"Shop\u2028Verified":           false,
		"Shop\u2029Verified":           false,
		"Shop \u202eelgooG":            false,
		"Shop \u2066elgooG":            false,
		strings.Repeat("x", 200):       true,
		strings.Repeat("x", 201):       false,
	} {
		r := Registration{ClientName: &name}
		if err := r.validate(); (err == nil) != valid {
			t.Errorf("%.60q: got %v, want valid: %v", name, err, valid)
		}
	}
}

func TestReadRequest(t *testing.T) {
	t.Parallel()

	challenge := strings.Repeat("a", 43)
	for query, want := range map[string]string{
		"response_type=code":                            "",
		"response_type=code&scope=openid+openid++email": "",
		"response_type=code&scope=+":                    "",
		"response_type=code&scope=offline_access":       "invalid_scope",
		"":                                     "invalid_request",
		"response_type=code+id_token":          "unsupported_response_type",
		"response_type=code&prompt=login+none": "login_required",
		"response_type=code&resource=https://a/%23x":           "invalid_target",
		"response_type=code&resource=https://a.example":        "",
		"response_type=code&nonce=" + strings.Repeat("n", 600): "invalid_request",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q.Set("code_challenge", challenge)
		q.Set("code_challenge_method", "S256")

		var a authorization
		got := ""
		if err := a.readParameters(q); err != nil {
			got = fault.Of(err).Code
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
		if strings.Contains(query, "openid+openid") && a.Scope != "openid email" {
			t.Errorf("%s: got the scope %q", query, a.Scope)
		}
	}

	var a authorization
	if err := a.readParameters(url.Values{"response_type": {"code"}, "code_challenge": {challenge},
		"code_challenge_method": {"s256"}}); err == nil {
		t.Error("the method s256 was accepted")
	}
	if a.Scope != defaultScope {
		t.Errorf("got the scope %q, want the default", a.Scope)
	}
}
