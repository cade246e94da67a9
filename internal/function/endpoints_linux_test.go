//go:build amd64 || arm64

package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// post sends a body to an endpoint of a project.
func post(ctx context.Context, s *Service, p *projectdb.Project, address, body string) (outbound.Response, error) {
	outside := outbound.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return outbound.Response{}, err
	}

	return s.Endpoints(p, outside).Do(ctx, p.Key(ctx), r)
}

// TestEndpoints: a function is called as the service within the server, another address outside.
func TestEndpoints(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "echo", `
		Deno.serve(async (r) => new Response([r.method, new URL(r.url).pathname, await r.text(),
			r.headers.get("authorization") === "Bearer " + Deno.env.get("SUPABASE_SERVICE_ROLE_KEY"),
			r.headers.get("x-socle-depth")].join(" "), { status: 201 }));`)

	res, err := post(t.Context(), s, p, "functions://echo/sub/path", "hello")
	if want := "POST /echo/sub/path hello true 1"; err != nil || res.Status != 201 || string(res.Body) != want {
		t.Errorf("got %d %s, %v, want %s", res.Status, res.Body, err, want)
	}

	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "outside")
	}))
	defer outside.Close()

	if res, err := post(t.Context(), s, p, outside.URL, ""); err != nil || string(res.Body) != "outside" {
		t.Errorf("got %s, %v", res.Body, err)
	}
}

// TestEndpointFailures: a function that can't answer has an answer that says so, as over HTTP.
func TestEndpointFailures(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "exits", `Deno.serve(() => Deno.exit(1));`)
	deploy(t, s, p, "loops", `Deno.serve(() => { while (true); });`)
	deploy(t, s, p, "large", `Deno.serve(() => new Response("x".repeat(1 << 20)));`)
	deploy(t, s, p, "redirects", `Deno.serve(() => Response.redirect("http://169.254.169.254/latest"));`)

	for name, want := range map[string]string{"exits": "500 WORKER_ERROR", "loops": "546 WORKER_LIMIT",
		"unknown": "404 NOT_FOUND"} {
		res, err := post(t.Context(), s, p, "functions://"+name, "")
		if got := fmt.Sprint(res.Status, " ", res.Header.Get("Sb-Error-Code")); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}

	if _, err := post(t.Context(), s, p, "functions://large", ""); !errors.Is(err, outbound.ErrTooLarge) {
		t.Errorf("large: got %v", err)
	}
	if _, err := post(t.Context(), s, p, "functions://redirects", ""); !errors.Is(err, outbound.ErrRedirect) {
		t.Errorf("redirects: got %v", err)
	}

	var none *Service
	if res, err := post(t.Context(), none, p, "functions://exits", ""); err != nil || res.Status != 404 {
		t.Errorf("without functions: got %d, %v", res.Status, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := post(ctx, s, p, "functions://exits", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled call: got %v", err)
	}
}

// TestEndpointLimits: a call has the time that the project's limits give it.
func TestEndpointLimits(t *testing.T) {
	t.Parallel()

	s := newService(t)
	second := 1
	changes := map[string]LimitChange{"answer": {AnswerSeconds: &second}, "wall": {WallSeconds: &second}}
	for name, change := range changes {
		p := projectdbtest.New(t)
		deploy(t, s, p, "waits", `Deno.serve(() => new Promise(() => setInterval(() => {}, 1000)));`)
		if _, err := s.UpdateLimits(t.Context(), p, change); err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
		defer cancel()

		_, err := post(ctx, s, p, "functions://waits", "")
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%s: got %v after the limit", name, err)
		}
	}
}
