package server

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/config"
)

// TestRedirect checks that reads are redirected to HTTPS, and that other requests are refused.
func TestRedirect(t *testing.T) {
	t.Parallel()

	r, err := newRedirect(config.Config{RedirectAddr: "127.0.0.1:0", PublicURL: "https://socle.example.com/base"})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()

	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, test := range []struct {
		method, path, location string
		status                 int
	}{
		{"GET", "/docs?a=b%20c", "https://socle.example.com/docs?a=b%20c", 308},
		{"POST", "/users/login", "", 403},
	} {
		url := "http://" + r.listener.Addr().String() + test.path
		request, err := http.NewRequestWithContext(t.Context(), test.method, url, nil)
		if err != nil {
			t.Fatal(err)
		}

		res, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()

		if got := res.Header.Get("Location"); res.StatusCode != test.status || got != test.location {
			t.Errorf("%s %s: got %d to %q, want %d to %q", test.method, test.path, res.StatusCode, got,
				test.status, test.location)
		}
	}
}
