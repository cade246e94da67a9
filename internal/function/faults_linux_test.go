//go:build amd64 || arm64

package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestDamagedVersions: a version whose code is missing or altered does not start, and others do.
func TestDamagedVersions(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	for _, name := range []string{"altered", "missing", "whole"} {
		deploy(t, s, p, name, `Deno.serve(() => new Response("`+name+`"));`)
	}
	if _, err := pg.Exec(t.Context(), p.Trusted(), `
		update socle.edge_function_versions set code = code || ' ' where function_name = 'altered'`,
		pgx.StrictNamedArgs{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), p.Trusted(), `
		delete from socle.edge_function_versions where function_name = 'missing'`, pgx.StrictNamedArgs{}); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"altered", "missing"} {
		_, err := call(t.Context(), s, p, name, "")
		if _, ok := errors.AsType[*runtime.BootError](err); !ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
	want(t, s, p, "whole", "whole")
}

// TestKilledProcesses: a process that is killed under load takes its requests with it, and no
// others.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "steady", `Deno.serve(() => new Response("fine"));`)
	want(t, s, p, "steady", "fine")

	for range 5 {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				got, err := call(t.Context(), s, p, "steady", "")
				if got != "fine" && !errors.Is(err, ErrNoAnswer) {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}

		s.mu.Lock()
		killed := s.current[key{p.UUID, "steady"}].process
		s.mu.Unlock()

		killed.Kill()
		<-killed.Exited()
		wg.Wait()
		pgtest.Eventually(t, "another process", func() bool {
			got, err := call(t.Context(), s, p, "steady", "")
			return err == nil && got == "fine"
		})
	}
}

// TestTwoServers: two servers that deploy at once end with the same version.
func TestTwoServers(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	servers := []*Service{newService(t), newService(t)}
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			for n := range 3 {
				_, err := s.Deploy(t.Context(), p, Deployment{Name: "shared",
					Code: fmt.Appendf(nil, `Deno.serve(() => new Response("%d of %d"));`, n, i)})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()

	pgtest.Eventually(t, "the same answer", func() bool {
		first, err := call(t.Context(), servers[0], p, "shared", "")
		if err != nil {
			t.Fatal(err)
		}
		second, err := call(t.Context(), servers[1], p, "shared", "")
		return err == nil && first == second
	})

	_, total, err := Versions(t.Context(), p, "shared", pg.Page{Number: 1, Limit: 10, Sort: "deployedAt"})
	if err != nil || total != 6 {
		t.Errorf("got %d versions, %v", total, err)
	}
}

// open calls a function and returns its answer, which the caller must close.
func open(ctx context.Context, t *testing.T, s *Service, p *projectdb.Project, name string) *http.Response {
	t.Helper()

	c, err := s.Acquire(ctx, p, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Release)

	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://function/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}

	res, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}

	return res
}

// TestEndWhileStreaming: the answers of a project that ends break off.
func TestEndWhileStreaming(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "endless", `
		const body = () => new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("begun")); } });
		Deno.serve(() => new Response(body()));`)

	res := open(t.Context(), t, s, p, "endless")
	defer res.Body.Close()

	begun := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, begun); err != nil {
		t.Fatal(err)
	}

	s.End(p.UUID)
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the answer ended as if it were whole")
	}
}

// TestLargeAnswers: an answer of any size flows at the pace of its reader, and too many headers are
// no answer.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "large", `
		let sent = 0;
		Deno.serve((r) => {
			if (new URL(r.url).searchParams.has("sent")) return new Response(String(sent));
			const block = new Uint8Array(1 << 20);
			return new Response(new ReadableStream({ pull(c) { sent++; c.enqueue(block); if (sent === 1024) c.close(); } }));
		});`)
	deploy(t, s, p, "headers", `
		Deno.serve(() => new Response("x", { headers: Array.from({ length: 10000 }, (_, i) => ["x-" + i, "y"]) }));`)

	res := open(t.Context(), t, s, p, "large")
	defer res.Body.Close()

	if _, err := io.ReadFull(res.Body, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	var sent int
	if text, err := call(t.Context(), s, p, "large", "sent"); err != nil {
		t.Error(err)
	} else if _, err := fmt.Sscan(text, &sent); err != nil || sent > 64 {
		t.Errorf("%d blocks were sent to a reader of one, %v", sent, err)
	}

	rest, err := io.Copy(io.Discard, res.Body)
	if err != nil || rest != 1023<<20 {
		t.Errorf("got %d further bytes, %v", rest, err)
	}

	if _, err := call(t.Context(), s, p, "headers", ""); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("10,000 headers: got %v", err)
	}
}
