package hook_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/outbound"
)

// loopback returns a client that may reach the machine itself.
func loopback() *outbound.Client {
	return hook.NewClient(outbound.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}))
}

func TestCallEndpoint(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		status   int
		header   map[string]string
		body     string
		reply    string
		code     string // of the failure
		attempts int32
	}{
		"reply":    {200, nil, `{"a":1}`, `{"a":1}`, "", 1},
		"accepted": {202, nil, `{}`, `{}`, "", 1},
		"none":     {204, nil, "", "", "", 1},

		"other type": {200, map[string]string{"Content-Type": "text/html"}, "", "",
			"hook_payload_invalid_content_type", 1},
		"huge":        {200, nil, strings.Repeat("x", 64<<10+1), "", "hook_payload_over_size_limit", 1},
		"bad request": {400, nil, "", "", "unexpected_failure", 1},
		"unavailable": {503, nil, "", "", "unexpected_failure", 1},
		"retry":       {503, map[string]string{"Retry-After": "0"}, "", "", "unexpected_failure", 3},
		"elsewhere":   {307, map[string]string{"Location": "http://127.0.0.2:1/"}, "", "", "hook_timeout_after_retry", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var attempts atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				attempts.Add(1)
				if n := len(strings.Fields(r.Header.Get("Webhook-Signature"))); n != 2 {
					t.Errorf("got %d signatures, want 2", n)
				}

				w.Header().Set("Content-Type", "application/json")
				for name, value := range tt.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			t.Cleanup(server.Close)

			const secret = "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
			got, err := hook.CallEndpoint(t.Context(), loopback(), fair.Key{Account: "tenant"},
				hook.Webhook{URL: server.URL, Secrets: secret + "|" + secret, ID: uuid.New(), Body: []byte("{}")})
			code := ""
			if err != nil {
				code = fault.Of(err).Code
			}
			if string(got) != tt.reply || code != tt.code {
				t.Errorf("got %s, %v, want %s, %s", got, err, tt.reply, tt.code)
			}
			if n := attempts.Load(); n != tt.attempts {
				t.Errorf("got %d attempts, want %d", n, tt.attempts)
			}
		})
	}
}
