package message

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/projectdb"
)

// TestSMSFailures checks which failures of a sender another attempt may repair.
func TestSMSFailures(t *testing.T) {
	t.Parallel()

	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)

	send := func(ctx context.Context, allowed ...netip.Prefix) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}

		o := &Outbox{Config: Config{Project: &projectdb.Project{}, Senders: outbound.New(allowed)}}
		return o.do(ctx, r)
	}

	for _, tt := range []struct {
		status        int
		body          string
		fails, refuse bool
	}{
		{200, `{}`, false, false}, {201, `no JSON`, false, false}, {429, ``, true, false}, {503, ``, true, false},
		{400, ``, true, true}, {200, `{"error": {"http_code": 400, "message": "unknown number"}}`, true, true},
	} {
		status, body = tt.status, tt.body
		if err := send(t.Context(), netip.MustParsePrefix("127.0.0.0/8")); (err != nil) != tt.fails ||
			errors.Is(err, errRefused) != tt.refuse {
			t.Errorf("%d %s: got %v", tt.status, tt.body, err)
		}
	}

	if err := send(t.Context()); !errors.Is(err, errRefused) {
		t.Errorf("a private network: got %v, want a refusal", err)
	}
}
