package server_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pgtest"
)

// writeCertificate writes a certificate of 127.0.0.1 and its key.
func writeCertificate(t *testing.T, certFile, keyFile string) {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	for name, block := range map[string]*pem.Block{
		keyFile: {Type: "PRIVATE KEY", Bytes: private}, certFile: {Type: "CERTIFICATE", Bytes: certificate},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPostgresTools runs tools that others made for PostgreSQL on a new project: drizzle-kit,
// dbmate, node-postgres and pg_dump. They connect through socle db proxy, and directly with a
// credential.
func TestPostgresTools(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key)

	a := apitest.New(t, func(c *config.Config) {
		c.PostgresAddr, c.PostgresTLSCert, c.PostgresTLSKey = "127.0.0.1:0", cert, key
	})

	for name, address := range map[string]func(t *testing.T, a *apitest.API) string{
		"proxy":    proxyAddress,
		"listener": func(_ *testing.T, a *apitest.API) string { return listenerAddress(a, "owner", cert) },
	} {
		t.Run(name, func(t *testing.T) {
			a := a.WithT(t).WithProject(a.CreateProject(name))
			at := address(t, a)

			for _, tool := range [][]string{
				{"node_modules/.bin/drizzle-kit", "migrate", "--config=drizzle/config.ts"},
				{"node_modules/.bin/drizzle-kit", "push", "--force", "--config=drizzle/config.ts"},
				{"node_modules/.bin/dbmate", "--migrations-dir", "dbmate", "--no-dump-schema", "up"},
				{"node", "postgres.mjs"},
			} {
				cmd := exec.CommandContext(t.Context(), tool[0], tool[1:]...)
				cmd.Dir, cmd.Env = clients, append(os.Environ(), "DATABASE_URL="+at)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", tool, err, out)
				}
			}

			dump, err := exec.CommandContext(t.Context(), "pg_dump", "--schema=public", "--no-owner", at).Output()
			if err != nil || !bytes.Contains(dump, []byte("REFERENCES public.authors(id)")) {
				t.Errorf("pg_dump: %v\n%s", err, dump)
			}

			a.Get("/tables/books").Want(200)

			if name == "listener" {
				wantReadOnlyDump(t, a, cert)
			}
		})
	}
}

// TestProxyOfLostClient: a client of socle db proxy that vanishes without a farewell leaves no
// session behind, whose locks would block the next one.
func TestProxyOfLostClient(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	conn, err := pgconn.Connect(t.Context(), proxyAddress(t, a))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "select pg_advisory_lock(72707369)").ReadAll(); err != nil {
		t.Fatal(err)
	}

	lost, err := conn.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	if err := lost.Conn.Close(); err != nil {
		t.Fatal(err)
	}

	other := a.ConnectProject()
	pgtest.Eventually(t, "the lock is free", func() bool {
		return pgtest.Value[bool](t, other, `select pg_try_advisory_lock(72707369)`)
	})
}

// proxyAddress starts socle db proxy and returns its address.
func proxyAddress(t *testing.T, a *apitest.API) string {
	t.Helper()

	settings := []string{
		"SOCLE_URL=" + a.URL, "SOCLE_TOKEN=" + a.Token, "SOCLE_PROJECT=" + a.Project, "XDG_CONFIG_HOME=" + t.TempDir(),
	}
	proxy := command(t, settings, "db", "proxy", "--listen", "127.0.0.1:0")
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := proxy.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := proxy.Wait(); err != nil {
			t.Errorf("socle db proxy: %v", err)
		}
	})

	var address string
	eventually(t, "the proxy listens", func() bool {
		out, _, status := run(t, settings, "", "db", "url")
		address = string(bytes.TrimSpace([]byte(out)))

		return status == 0
	})

	return address
}

// listenerAddress creates a credential and returns the address of the listener with it.
func listenerAddress(a *apitest.API, access, cert string) string {
	r := a.Post("/projects/"+a.Project+"/database-credentials",
		`{"name": "tools, `+access+`", "access": "`+access+`"}`).Want(201)
	u := url.URL{Scheme: "postgres", Host: a.Server.PostgresAddr().String(), Path: "/" + a.Project,
		User:     url.UserPassword(r.Get("username").(string), r.Metadata("password").(string)),
		RawQuery: url.Values{"sslmode": {"verify-full"}, "sslrootcert": {cert}}.Encode()}

	return u.String()
}

// wantReadOnlyDump checks that a read-only credential dumps the tables that others made.
func wantReadOnlyDump(t *testing.T, a *apitest.API, cert string) {
	t.Helper()

	dump := exec.CommandContext(t.Context(), "pg_dump", "--schema=public", "--data-only",
		listenerAddress(a, "read_only", cert))
	if out, err := dump.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("COPY public.authors")) {
		t.Errorf("pg_dump: %v\n%s", err, out)
	}
}
