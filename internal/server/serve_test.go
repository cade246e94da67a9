package server_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

// TestLifeOfAServer starts a server on an empty folder, runs commands beside it, and stops it under
// load.
func TestLifeOfAServer(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	settings := []string{"SOCLE_DATA_DIR=" + dir}
	p := serve(t, dir)
	c := p.newClient()
	if got := c.probe(t, "/readyz"); got != 200 {
		t.Errorf("/readyz: got %d", got)
	}

	address := regexp.QuoteMeta(p.url)
	first := regexp.MustCompile("(?m)^Console: " + address + "/console/sign-up#setup=[0-9a-f]{32}\nSocle is ready at " +
		address + "$")
	if log := p.log.String(); !first.MatchString(log) {
		t.Errorf("the server does not print %q first:\n%s", first, log)
	}

	postmaster := p.postmaster()

	t.Run("beside it", func(t *testing.T) {
		for _, args := range [][]string{{"doctor"}, {"migrate"}, {"openapi"}, {"version"}, {"admin", "rotate-key"},
			{"admin", "create", "--username", "root", "--email", "root@example.com"}} {
			out, log, status := run(t, settings, "another horse battery\n", args...)
			if status != 0 || out == "" {
				t.Errorf("socle %v: got status %d, %q, %q", args, status, out, log)
			}
		}

		if _, log, status := run(t, append(settings, "SOCLE_ADDR=127.0.0.1:0"), "", "serve"); status != 1 ||
			!strings.Contains(log, "another server uses the data folder") {
			t.Errorf("a second server: got status %d, %q", status, log)
		}
		if got := p.postmaster(); got != postmaster {
			t.Errorf("PostgreSQL: got process %d for the server, want %d", postmaster, got)
		}

		root := c.want(t, 200, "POST", "/users/login",
			`{"email": "root@example.com", "password": "another horse battery"}`)
		if root["roleId"] != 1.0 {
			t.Errorf("the new administrator has role %v", root["roleId"])
		}

		c.want(t, 200, "GET", "/tables", "") // token of the previous key
	})

	t.Run("stopped under load", func(t *testing.T) {
		var wg sync.WaitGroup
		begun := make(chan struct{}, 1000)
		for range 8 {
			wg.Go(func() {
				for {
					a := c.send(t, "PUT", "/users/"+unknownUUID, `{"bio": "x"}`)
					if a.status == 0 {
						return // refused: the server is stopping
					}

					if a.status != 401 {
						t.Errorf("while the server stops: %d %s", a.status, a.body)
					}

					select {
					case begun <- struct{}{}:
					default:
					}
				}
			})
		}

		for range 50 {
			<-begun
		}

		p.signal(syscall.SIGTERM)
		p.signal(syscall.SIGTERM)

		if status := p.wait(); status != 0 {
			t.Errorf("exit status %d, want 0", status)
		}

		wg.Wait()

		if p.postmaster() != 0 {
			t.Error("PostgreSQL still runs")
		}
	})

	t.Run("without it", func(t *testing.T) {
		for _, args := range [][]string{{"doctor"}, {"migrate"}, {"admin", "rotate-key"}} {
			if out, log, status := run(t, settings, "", args...); status != 0 {
				t.Errorf("socle %v: got status %d, %q, %q", args, status, out, log)
			}
			if p.postmaster() != 0 {
				t.Errorf("socle %v leaves PostgreSQL running", args)
			}
		}
	})

	again := serve(t, dir)
	c.at(again).want(t, 200, "GET", "/tables", "")
}

const unknownUUID = "01890000-0000-7000-8000-000000000000"

// TestRefusesToStart checks that a server with invalid settings exits with one line that names the
// reason.
func TestRefusesToStart(t *testing.T) {
	t.Parallel()

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { taken.Close() })

	const key = "kOrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE="
	for _, test := range []struct {
		name     string
		prepare  func(t *testing.T, dir string)
		settings []string
		status   int
		says     string
	}{
		{name: "port taken", settings: []string{"SOCLE_ADDR=" + taken.Addr().String()},
			status: 1, says: "address already in use: choose another address with --addr"},
		{name: "port for servers taken", settings: []string{"SOCLE_CLUSTER_ADDR=" + taken.Addr().String()},
			status: 1, says: "SOCLE_CLUSTER_ADDR: listen tcp"},
		{name: "folder is a file", settings: []string{"SOCLE_DATA_DIR=/dev/null/data"}, status: 1, says: "data folder"},
		{name: "key that others can read", prepare: func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "secret.key"), []byte(key+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, status: 1, says: "chmod 600"},
		{name: "unknown setting", settings: []string{"SOCLE_ADR=127.0.0.1:0"}, status: 2, says: "SOCLE_ADDR"},
		{name: "unknown value", settings: []string{"SOCLE_SIGN_UP=maybe"}, status: 2, says: "SOCLE_SIGN_UP"},
		{name: "no binaries", settings: []string{"SOCLE_POSTGRES_BIN=/nowhere"}, status: 1, says: "/nowhere"},
		{name: "no database", settings: []string{"SOCLE_DATABASE_URL=postgres://socle:seCret1@127.0.0.1:1/socle"},
			status: 1, says: "database"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()
			if test.prepare != nil {
				test.prepare(t, dir)
			}

			out, log, status := run(t,
				append([]string{"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + dir}, test.settings...), "", "serve")
			if status != test.status || out != "" {
				t.Errorf("got status %d, %q, want status %d", status, out, test.status)
			}
			if !strings.HasPrefix(log, "socle: ") || strings.Count(log, "\n") != 1 ||
				!strings.Contains(log, test.says) || strings.Contains(log, "seCret1") {
				t.Errorf("got %q, want one line with %q", log, test.says)
			}
		})
	}
}

// TestAnotherSecretKey checks that a server with another secret key exits without a new signing
// key.
func TestAnotherSecretKey(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	with := func(key string) []string {
		return []string{
			"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + t.TempDir(), "SOCLE_DATABASE_URL=" + url,
			"SOCLE_SECRET_KEY=" + key,
		}
	}
	if _, log, status := run(t, with("kOrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE="), "", "admin",
		"rotate-key"); status != 0 {
		t.Fatal(log)
	}

	_, log, status := run(t, with("ZZrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE="), "", "serve")
	if status != 1 || !strings.Contains(log, "wrong secret key for this install") ||
		strings.Count(log, "socle: ") != 1 {
		t.Errorf("got status %d, %q", status, log)
	}

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	var keys int
	if err := conn.QueryRow(t.Context(), "select count(*) from platform.signing_keys").
		Scan(&keys); err != nil || keys != 1 {
		t.Errorf("got %d keys, %v, want 1", keys, err)
	}
}

// TestServersTogether starts four servers at once on one empty, shared database.
func TestServersTogether(t *testing.T) {
	t.Parallel()

	for range crashesOr(t, 1) {
		settings := []string{
			"SOCLE_DATABASE_URL=" + pgtest.URL(t), "SOCLE_SECRET_KEY=kOrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE=",
		}

		var servers []*process
		for range 4 {
			servers = append(servers, launch(t, t.TempDir(), settings...))
		}

		for _, p := range servers {
			p.ready()
		}

		c := servers[0].newClient()
		for _, p := range servers {
			c.at(p).want(t, 200, "GET", "/projects/"+c.project, "")
			p.signal(syscall.SIGTERM)
		}

		for _, p := range servers {
			if status := p.wait(); status != 0 {
				t.Errorf("exit status %d", status)
			}
		}
	}
}
