package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pg"
)

// writeCertificate writes a new certificate of 127.0.0.1 and its key to a folder, and returns it.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	for name, block := range map[string]*pem.Block{
		"key.pem": {Type: "PRIVATE KEY", Bytes: private}, "cert.pem": {Type: "CERTIFICATE", Bytes: der},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}

	pool := x509.NewCertPool()
	pool.AddCert(parsed)

	return pool
}

// postgresClient connects to the server's listener for PostgreSQL clients.
type postgresClient struct {
	address  string
	roots    *x509.CertPool
	user     string
	password string
	database string
	plain    bool
	mode     string // sslnegotiation; "": postgres
}

func (c postgresClient) connect(ctx context.Context) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig("host=127.0.0.1 sslmode=disable")
	if err != nil {
		return nil, err
	}

	config.User, config.Password, config.Database = c.user, c.password, c.database
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", c.address)
	}

	if !c.plain {
		config.TLSConfig = &tls.Config{RootCAs: c.roots, ServerName: "127.0.0.1", NextProtos: []string{"postgresql"}}
		config.SSLNegotiation = c.mode
	}

	return pgconn.ConnectConfig(ctx, config)
}

// wantState fails the test unless a connection is refused with a SQLSTATE; "": accepted.
func (c postgresClient) wantState(t *testing.T, state string) {
	t.Helper()

	conn, err := c.connect(t.Context())
	if pg.State(err) != state || (err == nil) != (state == "") {
		t.Errorf("%s at %s: got %v, want %q", c.user, c.database, err, state)
	}
	if err == nil {
		conn.Close(t.Context())
	}
}

// credential creates a credential and returns a client with it.
func (c postgresClient) credential(a *apitest.API, body string) (client postgresClient, path string) {
	path = "/projects/" + a.Project + "/database-credentials"
	r := a.Post(path, body).Want(201)
	c.user, c.password = r.Get("username").(string), r.Metadata("password").(string)
	c.database = a.Project

	return c, path + "/" + r.Get("uuid").(string)
}

// startPostgres starts a server that listens for PostgreSQL clients, with a certificate in dir.
func startPostgres(t *testing.T) (a *apitest.API, c postgresClient, dir string) {
	t.Helper()

	dir = t.TempDir()
	roots := writeCertificate(t, dir)
	a = apitest.New(t, func(c *config.Config) {
		c.PostgresAddr = "127.0.0.1:0"
		c.PostgresTLSCert, c.PostgresTLSKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	})

	return a, postgresClient{address: a.Server.PostgresAddr().String(), roots: roots}, dir
}

func TestDatabaseCredentials(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/database-credentials"
	created := a.Member(3).Post(path, `{"name": "app", "access": "owner", "expires_at": "2100-01-01T00:00:00Z"}`).Want(201).
		Content("access", "owner").Content("expiresAt", "2100-01-01T00:00:00.000000Z").Content("lastUsedAt", nil)
	if created.Header.Get("Cache-Control") != "no-store" || len(created.Metadata("password").(string)) < 26 {
		t.Errorf("got %s", created.Body)
	}

	a.Post(path, `{"name": "APP", "access": "read_only"}`).Want(409).Field("name")
	a.Post(path, `{"name": `).Want(400)
	a.Post(path, `{"name": " ", "access": "read_only"}`).Want(422).Field("name")
	a.Post(path, `{"name": "x", "access": "all"}`).Want(422).Field("access")
	a.Post(path, `{"name": "x", "access": "owner", "expires_at": "2020-01-01T00:00:00Z"}`).Want(422).Field("expires_at")
	a.Get(path).Want(200).Content("0.name", "app").Content("0.username", created.Get("username"))
	a.Get(path + "?sort=verifier").Want(400)

	id := created.Get("uuid").(string)
	a.Delete(path + "/garbage").Want(400).Field("credentialUUID")
	a.Member(4).Delete(path + "/" + id).Want(403)
	a.Delete(path+"/"+id).Want(200).Content("name", "app")
	a.Delete(path + "/" + id).Want(404)

	a.Exec(`insert into platform.database_credentials (uuid, project_uuid, name, access, username, verifier, created_by)
		select gen_random_uuid(), $1, n::text, 'owner', gen_random_uuid()::text, '', $2 from generate_series(1, 99) n`,
		a.Project, a.User)
	wantCounts(t, concurrently(5, func(i int) *apitest.Reply {
		return a.Post(path, fmt.Sprintf(`{"name": "late %d", "access": "owner"}`, i))
	}), map[int]int{201: 1, 422: 4})
	a.Post(path, `{"name": "one more", "access": "owner"}`).Want(422).Code("quota_exceeded")
}

// TestPostgresClients checks which clients with credentials get a session, and its rights.
func TestPostgresClients(t *testing.T) {
	t.Parallel()

	a, c, dir := startPostgres(t)
	a.CreateTable("books", "title text")

	app, _ := c.credential(a, `{"name": "app", "access": "owner"}`)
	reports, path := c.credential(a, `{"name": "reports", "access": "read_only"}`)

	name := a.Get("/projects/" + a.Project).Want(200).Get("name").(string)
	for _, database := range []string{a.Project, strings.ToUpper(name), app.user} {
		app.database = database
		app.wantState(t, "")
	}

	reports.mode = "direct"
	conn, err := reports.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := result(t, conn, "select count(*) from books"); got != "0" {
		t.Errorf("got %s books, want 0", got)
	}

	const insert = "insert into books (title) values ('Emma')"
	if _, err := conn.Exec(t.Context(), insert).ReadAll(); pg.State(err) != "25006" {
		t.Errorf("got %v, want a read-only transaction", err)
	}
	result(t, conn, "set default_transaction_read_only = off; select 1")

	if _, err := conn.Exec(t.Context(), insert).ReadAll(); pg.State(err) != "42501" {
		t.Errorf("got %v, want insufficient privilege", err)
	}

	failed := make(chan error)
	go func() {
		_, err := conn.Exec(t.Context(), "select pg_sleep(600)").ReadAll()
		failed <- err
	}()

	until(t, "the statement runs", func() bool { return sleeping(a) })

	if err := conn.CancelRequest(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-failed; pg.State(err) != "57014" {
		t.Errorf("got %v, want the statement to be canceled", err)
	}

	a.Delete(path).Want(200)
	wantEnd(t, conn, "28000", "was revoked")
	reports.wantState(t, "28P01")

	for _, wrong := range []func(*postgresClient){
		func(c *postgresClient) { c.password = "wrong" },
		func(c *postgresClient) { c.password = "" },
		func(c *postgresClient) { c.user = "db_unknown" },
		func(c *postgresClient) { c.database = "other" },
		func(c *postgresClient) { c.database = a.OtherUser().CreateProject("other") },
	} {
		changed := app
		changed.database = a.Project
		wrong(&changed)
		changed.wantState(t, "28P01")
	}

	app.database, app.plain = a.Project, true
	app.wantState(t, "28000")
	app.plain = false

	expired, _ := c.credential(a, `{"name": "expired", "access": "owner"}`)
	a.Exec(`update platform.database_credentials set expires_at = now() where name = 'expired'`)
	expired.wantState(t, "28000")

	list := a.Get("/projects/" + a.Project + "/database-credentials?sort=name&limit=1").Want(200)
	if list.Get("0.lastUsedAt") == nil {
		t.Error("the use of a credential is not recorded")
	}

	// A restore keeps the rights of readers.
	a.DisableProofs()
	reader, _ := c.credential(a, `{"name": "reader", "access": "read_only"}`)
	reader.wantState(t, "")

	backup := a.Create("/backups", `{}`)
	waitForBackup(t, a, backup).Content("status", "completed")
	restore := a.Post("/backups/"+backup+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string)
	waitForRestore(t, a, restore, "completed")

	if conn, err = reader.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := result(t, conn, "select count(*) from books"); got != "0" {
		t.Errorf("got %s books after a restore, want 0", got)
	}
	conn.Close(t.Context())

	// A new certificate is used from the next connection on. Broken files leave the last in use.
	app.roots = writeCertificate(t, dir)
	app.wantState(t, "")

	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	app.wantState(t, "")

	conn, err = app.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	a.Post("/projects/"+a.Project+"/pause", "").Want(200)
	wantEnd(t, conn, "57P01", "was closed")
	app.wantState(t, "57P03")
	a.Delete("/projects/" + a.Project).Want(200)
	app.wantState(t, "28P01")
}

// TestHalfOpenClients checks that connections that send nothing are bounded, and that they leave
// room to a client of another network.
func TestHalfOpenClients(t *testing.T) {
	t.Parallel()

	a, c, _ := startPostgres(t)
	app, _ := c.credential(a, `{"name": "app", "access": "owner"}`)

	const networks, each, admitted = 10, 100, 256
	closed := make(chan error, networks*each)
	for i := range networks * each {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%networks))}}
		conn, err := dialer.DialContext(t.Context(), "tcp", c.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		go func() {
			_, err := conn.Read(make([]byte, 1))
			closed <- err
		}()
	}

	conn, err := app.connect(t.Context())
	if err != nil {
		t.Errorf("a client of another network: %v", err)
	} else {
		conn.Close(t.Context())
	}

	for range networks*each - admitted {
		if err := <-closed; err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want the connection to be closed", err)
		}
	}
}
