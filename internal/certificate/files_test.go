package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// newPair returns a new self-signed certificate, and PEM of its key and itself.
func newPair(t *testing.T) (*x509.Certificate, []byte) {
	t.Helper()

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(9 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}

	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}

	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}

	return parsed, append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
}

// writePair writes a new self-signed certificate and its key, and returns the certificate.
func writePair(t *testing.T, chain, key string) *x509.Certificate {
	t.Helper()

	pair, text := newPair(t)
	for _, name := range []string{chain, key} {
		if name == "" {
			continue
		}
		// As certbot and Kubernetes do it: another file in its place.
		if err := os.WriteFile(name+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}

	return pair
}

// TestFiles checks that changed files are served, and that the previous certificate stays while the
// files do not fit together.
func TestFiles(t *testing.T) {
	t.Parallel()

	chain, key := filepath.Join(t.TempDir(), "chain.pem"), filepath.Join(t.TempDir(), "key.pem")
	if _, err := OpenFiles(chain, key, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("missing files were accepted")
	}

	first := writePair(t, chain, key)

	f, err := OpenFiles(chain, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	served := func() *x509.Certificate {
		t.Helper()

		client, server := net.Pipe()
		defer client.Close()

		go func() {
			defer server.Close()

			_ = tls.Server(server, f.TLSConfig()).HandshakeContext(t.Context())
		}()

		conn := tls.Client(client, &tls.Config{InsecureSkipVerify: true}) // the test compares the certificate
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}

		return conn.ConnectionState().PeerCertificates[0]
	}

	if !served().Equal(first) {
		t.Error("another certificate is served")
	}
	if changed, err := f.reload(); changed || err != nil {
		t.Errorf("unchanged files: got %v, %v", changed, err)
	}

	writePair(t, chain, "")
	if changed, err := f.reload(); changed || err == nil {
		t.Errorf("a chain without its key: got %v, %v, want an error", changed, err)
	}
	if !served().Equal(first) {
		t.Error("the previous certificate is gone")
	}

	second := writePair(t, chain, key)
	if changed, err := f.reload(); !changed || err != nil {
		t.Errorf("new files: got %v, %v", changed, err)
	}
	if !served().Equal(second) {
		t.Error("the new certificate is not served")
	}
}
