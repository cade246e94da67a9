package projectdb_test

import (
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestDumpURL tests the addresses for pg_dump: the password is apart, and TLS is as in the address.
func TestDumpURL(t *testing.T) {
	t.Parallel()

	for _, given := range []string{
		"postgres://socle:canary@db.example.com/socle?sslmode=require&application_name=x",
		"postgres://socle:canary@db.example.com:5432,b.example.com:5433/socle?sslmode=require",
		"host=db.example.com dbname=socle user=socle password='canary' sslmode = 'require'",
	} {
		r, id := openAt(t, given), projectdbtest.UUID(t)
		address, password := r.Open(id).DumpURL()
		c, err := pgx.ParseConfig(address)
		if err != nil {
			t.Fatal(err)
		}

		if c.TLSConfig == nil || slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool {
			return f.TLSConfig == nil
		}) {
			t.Errorf("%s: pg_dump may connect without TLS", given)
		}
		if c.Host != "db.example.com" || c.Port != 5432 || c.User != r.Login(id, pgcluster.Dump) ||
			c.Database != r.Database(id) || c.Password != "" {
			t.Errorf("got %s", address)
		}
		if password == "" || strings.Contains(address, password) || strings.Contains(address, "canary") {
			t.Error("the address contains the password, or the password is empty")
		}
	}
}

// TestSeveralHosts opens the sessions of a project and runs PostgreSQL's programs through an
// address of two hosts, one of them down, in both orders. Several of the sessions are read-only.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()

	live := projectdbtest.New(t)
	c := projectdbtest.Registry(t).Platform().PlatformConfig()
	down := filepath.Join(t.TempDir(), "down")

	for _, hosts := range []string{down + "," + c.Host, c.Host + "," + down} {
		for _, wanted := range []string{"any", "read-write", "primary", "prefer-standby"} {
			r := openAt(t, "postgres:///postgres?"+url.Values{
				"host": {hosts}, "port": {strconv.Itoa(int(c.Port))}, "user": {c.User}, "password": {c.Password},
				"target_session_attrs": {wanted},
			}.Encode())

			p := r.Open(live.UUID)
			conn, err := p.ConnectDump(t.Context())
			if err != nil {
				t.Fatalf("dump login, %s of %s: %v", wanted, hosts, err)
			}
			_ = conn.Close(t.Context())

			for _, readOnly := range []bool{false, true} {
				s, err := p.OpenSession(t.Context(), readOnly, nil)
				if err != nil {
					t.Fatalf("session, %s of %s, read-only %v: %v", wanted, hosts, readOnly, err)
				}
				_ = s.Close()
			}

			address, password := p.DumpURL()
			runProgram(t, password, "pg_dump", "--schema-only", "--dbname="+address)

			address, password = p.Cluster().ProgramAddress(p.Cluster().Config(p.UUID, pgcluster.Owner))
			runProgram(t, password, "psql", "--command=select 1", address)
		}
	}
}

// openAt returns a registry of the projects on the server at an address.
func openAt(t *testing.T, address string) *projectdb.Registry {
	t.Helper()

	server, err := pg.PrimaryPoolConfig(address, 1)
	if err != nil {
		t.Fatal(err)
	}

	c := projectdbtest.Config(t, 8)
	c.Server = server

	return projectdbtest.Open(t, c)
}

func runProgram(t *testing.T, password, name string, args ...string) {
	t.Helper()

	cmd := osexec.CommandContext(t.Context(), filepath.Join(pgtest.BinDir(), name), args...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", name, err, out)
	}
}
