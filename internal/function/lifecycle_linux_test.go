//go:build amd64 || arm64

package function

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// waitingCode is a function whose answer waits for the request ?go, and says which version it is.
func waitingCode(version string) string {
	return `
		let go;
		const waits = new Promise((resolve) => go = resolve);
		Deno.serve(async (r) => {
			switch (new URL(r.url).search) {
				case "?go": go(); break;
				case "?wait": console.log("waits"); await waits;
			}
			return new Response("` + version + `");
		});`
}

// background calls a function in the background. The channel has its answer or failure.
func background(ctx context.Context, s *Service, p *projectdb.Project, name, query string) <-chan error {
	done := make(chan error, 1)
	go func() {
		got, err := call(ctx, s, p, name, query)
		if err == nil {
			err = errors.New("answered " + got)
		}
		done <- err
	}()

	return done
}

// currentOf returns the worker of a function.
func currentOf(s *Service, p *projectdb.Project, name string) *worker {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.current[key{p.UUID, name}]
}

// TestDrain: an old version has 30 seconds for its requests, while the new one answers.
func TestDrain(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "waits", waitingCode("one"))
	waiting := background(t.Context(), s, p, "waits", "wait")
	logged(t, p, "waits")
	old := currentOf(s, p, "waits")

	deploy(t, s, p, "waits", waitingCode("two"))
	want(t, s, p, "waits", "two")
	s.check(time.Now().Add(drainTimeout - time.Second))
	if old.process.HasExited() {
		t.Error("the old version ended before its time")
	}

	s.check(time.Now().Add(drainTimeout + time.Second))
	var limit *LimitError
	if err := <-waiting; !errors.As(err, &limit) || limit.Limit != "draining took too long" {
		t.Errorf("got %v", err)
	}
	want(t, s, p, "waits", "two")
}

// TestAge: a process takes no more requests after so many of them, and after so long.
func TestAge(t *testing.T) {
	t.Parallel()

	for name, outlive := range map[string]func(s *Service, w *worker){
		"requests": func(s *Service, w *worker) {
			s.mu.Lock()
			w.served = maxServed
			s.mu.Unlock()
			s.check(time.Now())
		},
		"time": func(s *Service, _ *worker) { s.check(time.Now().Add(maxAge + time.Second)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, p := newService(t), projectdbtest.New(t)
			deploy(t, s, p, "waits", waitingCode("one"))
			waiting := background(t.Context(), s, p, "waits", "wait")
			logged(t, p, "waits")

			old := currentOf(s, p, "waits")
			outlive(s, old)
			want(t, s, p, "waits", "one")
			if currentOf(s, p, "waits") == old {
				t.Error("the old process took another request")
			}

			old.process.Kill()
			if err := <-waiting; !errors.Is(err, ErrNoAnswer) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRuntimeDeleted: without its file, a runtime goes on for processes that it runs, and new ones
// have the reason until there is a file again.
func TestRuntimeDeleted(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	program := filepath.Join(t.TempDir(), runtime.ProgramName())
	if err := os.Symlink(s.Program, program); err != nil {
		t.Fatal(err)
	}
	actual := s.Program
	s.Program = program
	for _, name := range []string{"first", "second"} {
		deploy(t, s, p, name, waitingCode(name))
	}
	want(t, s, p, "first", "first")

	replace := func(target string) {
		if err := os.Remove(program); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if target == "" {
			return
		}
		if err := os.Symlink(target, program); err != nil {
			t.Fatal(err)
		}
	}
	other, err := os.Executable() // no release of Deno
	if err != nil {
		t.Fatal(err)
	}

	for _, target := range []string{"", other} {
		replace(target)
		s.dropBlank()
		want(t, s, p, "first", "first")
		if got, err := call(t.Context(), s, p, "second", ""); err == nil {
			t.Errorf("with runtime %q: got %q", target, got)
		}
	}

	replace(actual)
	pgtest.Eventually(t, "the second function", func() bool {
		got, err := call(t.Context(), s, p, "second", "")
		return err == nil && got == "second"
	})
}

// dropBlank ends the blank processes.
func (s *Service) dropBlank() {
	s.mu.Lock()
	blank := s.blank
	s.blank = nil
	s.mu.Unlock()

	for _, b := range blank {
		b.process.Close()
	}
}

// TestExhaustion: a function that fills its folder or unpacks more than it may hold fails by
// itself, and answers afterwards.
func TestExhaustion(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "takes", `
		const zeros = () => {
			let left = 2048;
			const block = new Uint8Array(1 << 20);
			return new ReadableStream({ pull(c) { left-- > 0 ? c.enqueue(block) : c.close(); } });
		};
		Deno.serve(async (r) => {
			switch (new URL(r.url).search) {
				case "?folder":
					for (let i = 0; ; i++) await Deno.writeFile("/tmp/" + i, new Uint8Array(1 << 20));
				case "?bomb": {
					const bomb = zeros().pipeThrough(new CompressionStream("gzip")).pipeThrough(new DecompressionStream("gzip"));
					return new Response((await new Response(bomb).arrayBuffer()).byteLength);
				}
			}
			return new Response("fine");
		});`)

	if got, err := call(t.Context(), s, p, "takes", "folder"); err != nil || got != "Internal Server Error" {
		t.Errorf("a full folder: got %q, %v", got, err)
	}
	logged(t, p, "No space left on device")
	want(t, s, p, "takes", "fine") // the same process

	if got, err := call(t.Context(), s, p, "takes", "bomb"); got == "2147483648" {
		t.Errorf("a bomb: got %q, %v", got, err)
	}
	pgtest.Eventually(t, "an answer", func() bool {
		got, err := call(t.Context(), s, p, "takes", "")
		return err == nil && got == "fine"
	})
}

// TestLeftovers: processes that start, answer and end leave no worker, no place and no blank
// process beyond those that wait.
func TestLeftovers(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "hello", `Deno.serve(() => new Response("hello"));`)
	for range 10 {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _, _ = call(t.Context(), s, p, "hello", "") }) // End may interrupt it
		}
		s.End(p.UUID)
		wg.Wait()
	}

	want(t, s, p, "hello", "hello")
	s.End(p.UUID)
	pgtest.Eventually(t, "the end of all processes", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()

		return len(s.all) == 0 && len(s.current) == 0 && len(s.blank) <= maxBlank && s.places.Stats().InUse == 0
	})
}
