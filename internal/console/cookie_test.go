package console

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestCookie checks that the cookie is for this server alone, and for HTTPS alone where the browser
// uses it.
func TestCookie(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		publicURL, origin string
		tls, secure       bool
	}{
		{publicURL: "http://127.0.0.1:8080", origin: "http://127.0.0.1:8080"},
		{publicURL: "http://127.0.0.1:8080"},
		{publicURL: "https://socle.example.com", origin: "https://socle.example.com", tls: true, secure: true},
		{publicURL: "https://socle.example.com", origin: "https://socle.example.com", secure: true},
		{publicURL: "https://socle.example.com", secure: true},
		{publicURL: "https://socle.example.com", origin: "null", secure: true},
		{publicURL: "https://socle.example.com", origin: "http://localhost:8080"},
		{publicURL: "http://127.0.0.1:8080", origin: "https://socle.example.com", secure: true}, // a proxy
		{publicURL: "http://127.0.0.1:8080", tls: true, secure: true},
	} {
		r := httptest.NewRequest("POST", sessionPath, nil)
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}

		console := &Console{Config: Config{PublicURL: c.publicURL}}
		cookie := console.cookie(r)
		want := http.Cookie{Name: "socle-console", Path: "/console", HttpOnly: true, SameSite: http.SameSiteStrictMode}
		if c.secure {
			want.Name, want.Secure = "__Secure-socle-console", true
		}

		if got := cookie.String(); got != want.String() {
			t.Errorf("%+v: got %s, want %s", c, got, want.String())
		}

		r.Header.Set("Cookie", "socle-console=plain; __Secure-socle-console=secure")
		wantToken := "plain"
		if c.secure {
			wantToken = "secure"
		}

		if got := console.refreshToken(r); got != wantToken {
			t.Errorf("%+v: got the token %s, want %s", c, got, wantToken)
		}
	}
}
