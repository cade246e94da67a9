package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/function/bundle"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/function/sandbox"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/repository"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// app is a served repository.
type app struct {
	t    *testing.T
	root string
	url  string

	mu  sync.Mutex
	log []string
}

// serve serves a repository with certain files until the test's end.
func serve(t *testing.T, walls bool, files map[string]string) *app {
	t.Helper()

	deno, err := filepath.Abs("../../../bin/deno")
	if err != nil {
		t.Fatal(err)
	}
	program := runtime.Find(deno)
	if program == "" {
		t.Fatal("Deno is not installed: make deno")
	}

	a := &app{t: t, root: t.TempDir()}
	for name, text := range files {
		a.write(name, text)
	}

	s := New(Config{
		Bundler: &bundle.Bundler{Program: program, Root: a.root,
			Environ: append(os.Environ(), "DENO_DIR="+filepath.Join(deno, "cache"))},
		Outbound: outbound.New(nil), Walls: walls,
		Functions: func() ([]repository.Function, error) {
			all, _, err := repository.ReadFunctions(a.root, func(string) (string, bool) { return "", false })
			return all, err
		},
		Environment: func() (map[string]string, error) { return map[string]string{"GREETING": "hello"}, nil },
		Verify: func(r *http.Request) error {
			if r.Header.Get("Apikey") == "" {
				return errors.New("no key")
			}
			return nil
		},
		Changed: func() string {
			text, _ := os.ReadFile(filepath.Join(a.root, "supabase/functions/a/index.ts"))
			return string(text)
		},
		Log: a.record,
	})

	web := httptest.NewServer(s)
	var open sync.WaitGroup
	open.Go(func() { s.Run(t.Context()) })
	t.Cleanup(func() {
		web.Close()
		open.Wait()
	})
	a.url = web.URL

	return a
}

func (a *app) write(name, text string) {
	a.t.Helper()

	file := filepath.Join(a.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *app) record(function, stream, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.log = append(a.log, function+" "+stream+" "+text)
}

func (a *app) logged(text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	return strings.Contains(strings.Join(a.log, "\n"), text)
}

// get returns the status and answer of a path. key says whether the request has a key.
func (a *app) get(path string, key bool) string {
	a.t.Helper()

	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.url+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	if key {
		r.Header.Set("Apikey", "key")
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}

	return fmt.Sprint(res.StatusCode, " ", string(text))
}

// TestServe serves functions with and without walls, and loads them anew after a change.
func TestServe(t *testing.T) {
	t.Parallel()

	for name, walls := range map[string]bool{"walls": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			a := serve(t, walls, map[string]string{
				"supabase/config.toml": "[functions.open]\nverify_jwt = false\n",
				"supabase/functions/a/index.ts": `Deno.serve((request: Request) => {
					console.log("called");
					return new Response(Deno.env.get("GREETING") + " " + new URL(request.url).pathname + new URL(request.url).search);
				});`,
				"supabase/functions/open/index.ts": `export default { fetch: async () => new Response(
					await Deno.readTextFile("/etc/passwd").then(() => "open", () => "walls")) };`,
				"supabase/functions/large/index.ts": `export default { fetch: () => {
					const all = Array.from({ length: 100 }, () => new Array(131072).fill(1.5)); // 100 MiB
					return new Response("held " + all.length); } };`,
				"supabase/functions/broken/index.ts": "const x: = 1;",
				"supabase/functions/silent/index.ts": "export const a = 1;",
			})

			for path, want := range map[string]string{
				Prefix + "a/b%20c?d=e":                  "200 hello /a/b%20c?d=e",
				"/projects/1" + Prefix + "a":            "200 hello /a",
				Prefix + "open":                         "200 " + name,
				Prefix + "large":                        "200 held 100",
				Prefix + "gone":                         "404 {\"code\":404,\"message\":\"the repository has no such function\"}\n",
				"/other":                                "404 {\"code\":404,\"message\":\"functions are at /functions/v1/NAME\"}\n",
				"/functions/v1/../../functions/v1/gone": "404 ",
			} {
				if got := a.get(path, true); !strings.HasPrefix(got, want) {
					t.Errorf("%s: got %s, want %s", path, got, want)
				}
			}

			if got := a.get(Prefix+"a", false); !strings.HasPrefix(got, "401 ") {
				t.Errorf("without a key: got %s", got)
			}
			if got := a.get(Prefix+"open", false); !strings.HasPrefix(got, "200 ") {
				t.Errorf("an open function without a key: got %s", got)
			}
			if got := a.get(Prefix+"broken", true); !strings.Contains(got, "supabase/functions/broken/index.ts:1:") {
				t.Errorf("a broken function: got %s", got)
			}
			if got := a.get(Prefix+"silent", true); !strings.HasPrefix(got, "503 ") {
				t.Errorf("a function without a handler: got %s", got)
			}
			pgtest.Eventually(t, "the log", func() bool { return a.logged("a stdout called") })

			a.write("supabase/functions/a/index.ts", `Deno.serve(() => new Response("changed"));`)
			pgtest.Eventually(t, "the change", func() bool { return a.get(Prefix+"a", true) == "200 changed" })
		})
	}
}

// TestStopped: a request that comes as the server ends starts no process, which would stay.
func TestStopped(t *testing.T) {
	t.Parallel()

	s := New(Config{
		Bundler: &bundle.Bundler{Program: "/nowhere"}, Changed: func() string { return "" },
		Functions: func() ([]repository.Function, error) {
			return []repository.Function{{Name: "a", VerifyJWT: new(bool)}}, nil
		},
		Log: func(string, string, string) {},
	})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s.Run(ctx)

	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Prefix+"a", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), errStopped.Error()) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestOutward: functions reach the project's server, and no private network.
func TestOutward(t *testing.T) {
	t.Parallel()

	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "reached "+r.URL.Path)
	}))
	defer host.Close()
	address := strings.TrimPrefix(host.URL, "http://")

	s := New(Config{Outbound: outbound.New(nil), Project: address})
	proxy := httptest.NewServer(http.HandlerFunc(s.serveOutward))
	defer proxy.Close()

	fetch := func() string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, host.URL+"/rest", nil)
		w := httptest.NewRecorder()
		s.serveOutward(w, r)

		return fmt.Sprint(w.Code, " ", w.Body)
	}
	if got := fetch(); got != "200 reached /rest" {
		t.Errorf("the project: got %s", got)
	}

	s.Project = ""
	if got := fetch(); !strings.HasPrefix(got, "403 ") {
		t.Errorf("a private network: got %s", got)
	}
}
