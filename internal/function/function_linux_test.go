//go:build amd64 || arm64

package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/function/sandbox"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	pgtest.Main(m)
}

// newService returns a running service, which stops at the test's end.
func newService(t *testing.T) *Service {
	t.Helper()

	program, err := filepath.Abs("../../bin/deno/deno")
	if err != nil {
		t.Fatal(err)
	}

	s := New(Config{Program: program, Outbound: outbound.New(nil), Log: slog.New(slog.DiscardHandler),
		Environment: func(_ context.Context, p *projectdb.Project) (map[string]string, error) {
			return map[string]string{"SUPABASE_URL": "http://socle.test/projects/" + p.UUID.String(),
				"SUPABASE_SERVICE_ROLE_KEY": "key of the service"}, nil
		}})

	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})

	return s
}

// deploy deploys a function.
func deploy(t *testing.T, s *Service, p *projectdb.Project, name, code string) EdgeFunction {
	t.Helper()

	f, err := s.Deploy(t.Context(), p, Deployment{Name: name, Code: []byte(code)})
	if err != nil {
		t.Fatal(err)
	}

	return f
}

// call calls a function and returns its answer.
func call(ctx context.Context, s *Service, p *projectdb.Project, name, query string) (string, error) {
	c, err := s.Acquire(ctx, p, name)
	if err != nil {
		return "", err
	}
	defer c.Release()

	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://function/"+name+"?"+query, nil)
	if err != nil {
		return "", err
	}

	res, err := c.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	return string(body), err
}

// want calls a function and compares its answer.
func want(t *testing.T, s *Service, p *projectdb.Project, name, answer string) {
	t.Helper()

	if got, err := call(t.Context(), s, p, name, ""); err != nil || got != answer {
		t.Errorf("got %q, %v, want %q", got, err, answer)
	}
}

// logged waits for a line in a project's log.
func logged(t *testing.T, p *projectdb.Project, text string) {
	t.Helper()

	pgtest.Eventually(t, "the line "+text, func() bool {
		found, err := pg.Value[bool](t.Context(), p.Trusted(), `
			select exists (select from socle.edge_function_log where position(@text in message) > 0)`,
			pgx.StrictNamedArgs{"text": text})
		if err != nil {
			t.Fatal(err)
		}

		return found
	})
}

// TestDeploy: a version that starts becomes the current one at once, and a former one again.
func TestDeploy(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	first := deploy(t, s, p, "hello", `Deno.serve(() => new Response("one"));`)
	want(t, s, p, "hello", "one")
	if !first.VerifyJWT || first.Size != 38 || len(first.Version) != 64 {
		t.Errorf("got %+v", first)
	}

	deploy(t, s, p, "hello", `Deno.serve(() => new Response("two"));`)
	want(t, s, p, "hello", "two")

	_, err := s.Deploy(t.Context(), p, Deployment{Name: "hello",
		Code: []byte(`throw new Error("broken at the start");`)})
	if fault.Of(err).Code != "boot_error" || !strings.Contains(fault.Of(err).Detail, "broken at the start") {
		t.Errorf("a version that does not start: got %v", err)
	}
	want(t, s, p, "hello", "two")

	open := false
	f, err := s.Update(t.Context(), p, "hello", &first.Version, &open)
	if err != nil || f.Version != first.Version || f.VerifyJWT {
		t.Fatalf("got %+v, %v", f, err)
	}
	want(t, s, p, "hello", "one")

	versions, total, err := Versions(t.Context(), p, "hello", pg.Page{Number: 1, Limit: 10, Sort: "deployedAt"})
	if err != nil || total != 2 || len(versions) != 2 || !versions[0].Current || versions[1].Current {
		t.Errorf("got %+v, %d, %v", versions, total, err)
	}

	other := strings.Repeat("0", 64)
	if _, err := s.Update(t.Context(), p, "hello", &other, nil); fault.Of(err).Code != "unknown_version" {
		t.Errorf("an unknown version: got %v", err)
	}

	if _, err := s.Delete(t.Context(), p, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), p, "hello"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a deleted function: got %v", err)
	}
	if _, err := s.Delete(t.Context(), p, "hello"); !fault.Is(err, fault.NotFound) {
		t.Errorf("its second deletion: got %v", err)
	}
}

// onField reports whether an error is about a field.
func onField(err error, name string) bool {
	fields := fault.Of(err).Fields
	return len(fields) == 1 && fields[0].Name == name
}

// TestRules: names and sizes have bounds.
func TestRules(t *testing.T) {
	t.Parallel()

	s := New(Config{})
	for _, name := range []string{"", "a/b", "..", ".socle", "-a", "a b", strings.Repeat("a", 64), "é"} {
		if _, err := s.Deploy(t.Context(), nil, Deployment{Name: name, Code: []byte("x")}); !onField(err, "name") {
			t.Errorf("%q: got %v", name, err)
		}
	}
	for _, code := range [][]byte{nil, make([]byte, MaxCode+1)} {
		if _, err := s.Deploy(t.Context(), nil, Deployment{Name: "a", Code: code}); !onField(err, "code") {
			t.Errorf("%d bytes: got %v", len(code), err)
		}
	}
}

// TestSecrets: functions have the secrets of their project, and new ones at once.
func TestSecrets(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	const code = `Deno.serve(() => new Response(Deno.env.get("KEY") + " " + Deno.env.get("SUPABASE_URL")));`
	url := "http://socle.test/projects/" + p.UUID.String()

	deploy(t, s, p, "show", code)
	want(t, s, p, "show", "undefined "+url)

	if _, err := s.SetSecret(t.Context(), p, "KEY", "a\nb"); err != nil {
		t.Fatal(err)
	}
	want(t, s, p, "show", "a\nb "+url)

	sealed, err := pg.Value[[]byte](t.Context(), p.Trusted(), `select sealed from socle.edge_function_secrets`)
	if err != nil || strings.Contains(string(sealed), "a\nb") {
		t.Errorf("the table has %q, %v", sealed, err)
	}

	for name, value := range map[string]string{"SUPABASE_URL": "x", "1": "x", "A-B": "x", "A": "\x00",
		"B": strings.Repeat("x", maxSecret+1)} {
		if _, err := s.SetSecret(t.Context(), p, name, value); !fault.Is(err, fault.Unprocessable) {
			t.Errorf("%s: got %v", name, err)
		}
	}

	if _, err := s.DeleteSecret(t.Context(), p, "KEY"); err != nil {
		t.Fatal(err)
	}
	want(t, s, p, "show", "undefined "+url)
}

// TestRestoredSecrets: secrets in a backup of another project are sealed anew, and those of another
// install are left out.
func TestRestoredSecrets(t *testing.T) {
	t.Parallel()

	s := newService(t)
	r := projectdbtest.Registry(t)
	from, to := projectdbtest.New(t), projectdbtest.New(t)
	if _, err := s.SetSecret(t.Context(), from, "KEY", "value"); err != nil {
		t.Fatal(err)
	}

	sealed, err := pg.Value[[]byte](t.Context(), from.Trusted(), `select sealed from socle.edge_function_secrets`)
	if err != nil {
		t.Fatal(err)
	}

	err = to.InTx(t.Context(), func(tx pgx.Tx) error {
		_, err := pg.Exec(t.Context(), tx, `
			insert into socle.edge_function_secrets (name, sealed) values ('KEY', @sealed), ('FOREIGN', 'sealed elsewhere')`,
			pgx.StrictNamedArgs{"sealed": sealed})
		if err != nil {
			return err
		}

		return r.RestoreFunctionSecrets(t.Context(), tx, from.UUID, to.UUID)
	})
	if err != nil {
		t.Fatal(err)
	}

	got, err := openSecrets(t.Context(), to)
	if err != nil || len(got) != 1 || got["KEY"] != "value" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestLimits: a function that takes too much ends, and its next request has a new process.
func TestLimits(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "hog", `
		const kept = [];
		Deno.serve((r) => {
			switch (new URL(r.url).search) {
				case "?loop": while (true);
				case "?regex": return new Response(/^(a+)+$/.test("a".repeat(60) + "b"));
				case "?exit": Deno.exit(3);
				case "?heap": while (true) kept.push({ kept: [kept.length] });
				case "?log": for (let i = 0; i < 1000; i++) console.log("line", i);
			}
			return new Response("fine");
		});`)

	for query, limit := range map[string]string{"loop": "processor time", "regex": "processor time"} {
		_, err := call(t.Context(), s, p, "hog", query)
		var got *LimitError
		if !errors.As(err, &got) || got.Limit != limit {
			t.Errorf("%s: got %v", query, err)
		}
		want(t, s, p, "hog", "fine")
	}
	for _, query := range []string{"exit", "heap"} {
		if _, err := call(t.Context(), s, p, "hog", query); err == nil {
			t.Errorf("%s: got no error", query)
		}
		pgtest.Eventually(t, "the next process", func() bool {
			got, err := call(t.Context(), s, p, "hog", "")
			return err == nil && got == "fine"
		})
	}

	if _, err := call(t.Context(), s, p, "hog", "log"); err != nil {
		t.Error(err)
	}
	logged(t, p, "line 90")
	logged(t, p, "Ended: processor time")
	lines, err := pg.Value[int64](t.Context(), p.Trusted(), `
		select count(*) from socle.edge_function_log where stream = 'stdout'`)
	if err != nil || lines > windowLines {
		t.Errorf("%d lines, %v", lines, err)
	}
}

// TestOutward: functions reach public addresses only, and the server itself.
func TestOutward(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to, ok := strings.CutPrefix(r.URL.Path, "/to/"); ok {
			http.Redirect(w, r, "http://"+to, http.StatusFound)
			return
		}
		fmt.Fprint(w, r.Host, " of the server", r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(server.Close)
	listener := server.Listener.Addr().String()
	s.Self = Self{URL: "http://socle.test",
		Connect: func(ctx context.Context, client netip.Addr) (net.Conn, error) {
			if client != clientAddress(p.UUID) {
				t.Errorf("got client %v", client)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", listener)
		},
		ServeDatabase: func(conn net.Conn, project uuid.UUID, function string) {
			_, _ = fmt.Fprint(conn, "database of ", project, " for ", function)
			_ = conn.Close()
		}}

	deploy(t, s, p, "reach", `
		Deno.serve(async (r) => {
			const url = decodeURIComponent(new URL(r.url).search.slice(1));
			if (url.startsWith("tcp:")) {
				const [, hostname, port] = url.split(":");
				const outcome = Deno.connect({ hostname, port: Number(port) })
					.then((conn) => new Response(conn.readable).text(), (e) => e.message);
				return new Response(await outcome);
			}
			const res = await fetch(url, { headers: { "x-forwarded-for": "1.2.3.4" } });
			return new Response(res.status + " " + (await res.text()).trim());
		});`)

	const closed = "the address is closed to functions"
	for query, answer := range map[string]string{
		"http://socle.test/":                          "200 socle.internal of the server",
		"http://socle.internal/":                      "200 socle.internal of the server",
		"tcp:db.socle.internal:5432":                  "database of " + p.UUID.String() + " for reach",
		"http://" + listener + "/":                    "403 " + closed,
		"http://169.254.169.254/latest":               "403 " + closed,
		"http://socle.test/to/169.254.169.254/latest": "403 " + closed,
		"http://[::1]:80/":                            "403 " + closed,
		"http://localhost:80/":                        "403 " + closed,
		"tcp:10.0.0.1:5432":                           "connect 10.0.0.1:5432: 403 Forbidden",
		"tcp:1.1.1.1:25":                              "connect 1.1.1.1:25: 403 Forbidden",
	} {
		got, err := call(t.Context(), s, p, "reach", query)
		if err != nil || got != answer {
			t.Errorf("%s: got %q, %v, want %q", query, got, err, answer)
		}
	}
}

// TestIdle: processes end when idle, too old or deleted, and with their project.
func TestIdle(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "hello", `
		addEventListener("beforeunload", (e) => console.log("ends:", e.detail.reason));
		Deno.serve(() => new Response("hello"));`)
	running := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()

		return len(s.all) > 0
	}

	want(t, s, p, "hello", "hello")
	s.check(time.Now().Add(2 * idleTimeout))
	pgtest.Eventually(t, "the end of the idle process", func() bool { return !running() })
	logged(t, p, "ends: idle")

	want(t, s, p, "hello", "hello")
	s.End(p.UUID)
	pgtest.Eventually(t, "the end of the project's processes", func() bool { return !running() })
}

// TestUnavailable: without Deno the reason is known.
func TestUnavailable(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	s.Program = "/nowhere/deno"
	_, err := s.Deploy(t.Context(), p, Deployment{Name: "a", Code: []byte("x")})
	if !fault.Is(err, fault.Unavailable) || !errors.Is(err, runtime.ErrMissing) {
		t.Errorf("got %v", err)
	}
}

// TestBudget: requests add processor time, up to a maximum.
func TestBudget(t *testing.T) {
	t.Parallel()

	var b budget
	const request = 2 * time.Second
	b.grant(request)
	b.begin(time.Second, request)
	if !b.spend(time.Second + 2*request) {
		t.Error("the budget of the start and one request is used up too early")
	}
	if b.spend(time.Second + 2*request + 1) {
		t.Error("more than the budget was spent")
	}

	for range 1000 {
		b.grant(request)
	}
	if b.left > maxRequests*request {
		t.Errorf("%s are left", b.left)
	}
}

// TestThrottle: a process logs so many lines, and the rest is counted.
func TestThrottle(t *testing.T) {
	t.Parallel()

	var l throttle
	now := time.Now()
	admitted := 0
	for range windowLines + 7 {
		if ok, _ := l.admit(now, 10); ok {
			admitted++
		}
	}
	if admitted != windowLines {
		t.Errorf("%d lines", admitted)
	}
	if ok, dropped := l.admit(now.Add(2*logWindow), 10); !ok || dropped != 7 {
		t.Errorf("got %v, %d", ok, dropped)
	}
}
