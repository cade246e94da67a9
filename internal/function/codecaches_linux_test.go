//go:build amd64 || arm64

package function

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestCodeCaches: a large version has a code cache after its deployment, which the next process of
// its project takes, and no other project's.
func TestCodeCaches(t *testing.T) {
	t.Parallel()

	s, p, other := newService(t), projectdbtest.New(t), projectdbtest.New(t)
	code := `const answer = "large"; Deno.serve(() => new Response(answer)); //` + strings.Repeat("x", minCachedCode)
	large := deploy(t, s, p, "large", code)
	small := deploy(t, s, p, "small", `Deno.serve(() => new Response("small"));`)

	pgtest.Eventually(t, "the code cache", func() bool {
		made, ok := s.codeCaches.get(p, large.Version)
		return ok && len(made) > 0
	})
	if _, ok := s.codeCaches.get(p, small.Version); ok {
		t.Error("a small version has a code cache")
	}
	if _, ok := s.codeCaches.get(other, large.Version); ok {
		t.Error("another project has the code cache")
	}

	want(t, s, p, "large", "large")
	s.End(p.UUID)
	want(t, s, p, "large", "large")
	logged(t, p, "Ended: project ended")
}
