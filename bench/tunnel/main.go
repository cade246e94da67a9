// Command tunnel compares sessions of PostgreSQL clients with a session on PostgreSQL's own socket:
// through socle db proxy, and through the listener for PostgreSQL clients. It measures COPY in both
// directions and short queries one after the other, and prints each rate with its ratio to that of
// the direct session. The server runs in this process, the proxy in one of its own.
//
//	go run ./bench/tunnel [-megabytes 512] [-queries 5000] [-rounds 3]
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	megabytes = flag.Int64("megabytes", 512, "size of the copied table")
	queries   = flag.Int("queries", 5000, "number of short queries")
	rounds    = flag.Int("rounds", 3, "number of rounds, of which the best counts")
)

func main() {
	flag.Parse()

	dir, err := socle.TempDir("", "socle-tunnel-")
	if err != nil {
		log.Fatal(err)
	}

	err = writeCertificate(dir)
	if err == nil {
		err = socle.Run(context.Background(), "", []string{
			"SOCLE_POSTGRES_ADDR=127.0.0.1:0", "SOCLE_POSTGRES_TLS_CERT=" + filepath.Join(dir, "cert.pem"),
			"SOCLE_POSTGRES_TLS_KEY=" + filepath.Join(dir, "key.pem"),
		}, slog.New(slog.DiscardHandler), run)
	}

	_ = os.RemoveAll(dir)

	if err != nil {
		log.Fatal(err)
	}
}

// writeCertificate writes a certificate and its key. The client does not verify it.
func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}

	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}

	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}

	for name, block := range map[string]*pem.Block{
		"key.pem": {Type: "PRIVATE KEY", Bytes: private}, "cert.pem": {Type: "CERTIFICATE", Bytes: certificate},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}

	return nil
}

// path is a session on one of the ways to the database.
type path struct {
	name string
	conn *pgconn.PgConn
}

// load is a measurement of a session.
type load struct {
	name, unit string
	run        func(context.Context, *pgconn.PgConn) (float64, error)
}

func run(ctx context.Context, s *socle.Socle) error {
	direct, err := s.Projects().Open(s.Project).Owner().Acquire(ctx)
	if err != nil {
		return err
	}
	defer direct.Release()

	proxied, stop, err := connectProxy(ctx, s)
	if err != nil {
		return err
	}
	defer stop()

	listened, err := connectListener(ctx, s)
	if err != nil {
		return err
	}

	paths := []path{{"direct", direct.Conn().PgConn()}, {"db proxy", proxied}, {"listener, TLS", listened}}
	for _, l := range []load{
		{"COPY TO", "MB/s", copyOut}, {"COPY FROM", "MB/s", copyIn}, {"queries", "/s", query},
	} {
		best := make([]float64, len(paths))
		for range *rounds { // interleaved, so that other load of the machine slows down all paths alike
			for i, p := range paths {
				rate, err := l.run(ctx, p.conn)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", p.name, l.name, err)
				}
				best[i] = max(best[i], rate)
			}
		}

		for i, p := range paths {
			fmt.Printf("%-10s %-14s %8.0f %-5s %5.2f of direct\n", l.name, p.name, best[i], l.unit, best[i]/best[0])
		}
	}

	return nil
}

// connectProxy starts socle db proxy and connects to it.
func connectProxy(ctx context.Context, s *socle.Socle) (*pgconn.PgConn, func(), error) {
	program, err := socle.Build(ctx, s.Dir)
	if err != nil {
		return nil, nil, err
	}

	cmd := exec.CommandContext(ctx, program, "db", "proxy", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "SOCLE_URL="+s.URL, "SOCLE_TOKEN="+s.Token, "SOCLE_PROJECT="+s.Project.String(),
		"XDG_CONFIG_HOME="+filepath.Join(s.Dir, "config"))
	cmd.Stderr = os.Stderr

	proxy, err := socle.StartProcess(cmd)
	if err != nil {
		return nil, nil, err
	}

	conn, err := pgconn.Connect(ctx, proxy.URL)
	return conn, proxy.Stop, err
}

// connectListener creates a credential and connects to the listener.
func connectListener(ctx context.Context, s *socle.Socle) (*pgconn.PgConn, error) {
	text, err := s.Do("POST", "/projects/"+s.Project.String()+"/database-credentials",
		strings.NewReader(`{"name": "bench", "access": "owner"}`))
	if err != nil {
		return nil, err
	}

	var r struct {
		Content  struct{ Username string }
		Metadata struct{ Password string }
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}

	return pgconn.Connect(ctx, fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=require", r.Content.Username,
		r.Metadata.Password, s.PostgresAddr(), s.Project))
}

// row has 128 bytes in COPY's text format.
const row = "1\tlorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua ut\n"

func copyOut(ctx context.Context, conn *pgconn.PgConn) (float64, error) {
	start := time.Now()
	rows := *megabytes << 20 / int64(len(row))
	_, err := conn.CopyTo(ctx, io.Discard, fmt.Sprintf("copy (select 1, %s from generate_series(1, %d)) to stdout",
		"'"+strings.TrimSpace(row[2:])+"'", rows))

	return float64(*megabytes) / time.Since(start).Seconds(), err
}

func copyIn(ctx context.Context, conn *pgconn.PgConn) (float64, error) {
	if _, err := conn.Exec(ctx,
		"drop table if exists public.copied; create unlogged table public.copied (n int, t text)").ReadAll(); err != nil {
		return 0, err
	}

	start := time.Now()
	_, err := conn.CopyFrom(ctx, &repeated{left: *megabytes << 20 / int64(len(row))}, "copy public.copied from stdin")

	return float64(*megabytes) / time.Since(start).Seconds(), err
}

func query(ctx context.Context, conn *pgconn.PgConn) (float64, error) {
	start := time.Now()
	for range *queries {
		if r := conn.ExecParams(ctx, "select $1::int", [][]byte{[]byte("1")}, nil, nil, nil).Read(); r.Err != nil {
			return 0, r.Err
		}
	}

	return float64(*queries) / time.Since(start).Seconds(), nil
}

// repeated reads row several times.
type repeated struct {
	left int64
	rest string
}

func (r *repeated) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if r.rest == "" {
			if r.left == 0 {
				return n, io.EOF
			}
			r.left--
			r.rest = row
		}

		copied := copy(b[n:], r.rest)
		n, r.rest = n+copied, r.rest[copied:]
	}

	return n, nil
}
