package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHTTPS starts a server with the files of a certificate. Package certificate tests how they are
// replaced, and orders from an ACME service.
func TestHTTPS(t *testing.T) {
	t.Parallel()

	// httptest's certificate is valid for 127.0.0.1.
	example := httptest.NewUnstartedServer(nil)
	example.StartTLS()
	example.Close()

	pair := example.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	p := serve(t, filepath.Join(dir, "data"), "SOCLE_TLS_CERT="+write("chain.pem", "CERTIFICATE", pair.Certificate[0]),
		"SOCLE_TLS_KEY="+write("key.pem", "PRIVATE KEY", key))
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("the server is ready at %s, want https", p.url)
	}

	roots := x509.NewCertPool()
	roots.AddCert(example.Certificate())
	for _, major := range []int{1, 2} {
		client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: major == 2,
		}}
		defer client.CloseIdleConnections()

		res, err := client.Get(p.url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()

		if res.StatusCode != http.StatusOK || res.ProtoMajor != major {
			t.Errorf("got %s %s, want 200 over HTTP/%d", res.Proto, res.Status, major)
		}
	}

	if res, err := http.Get(strings.Replace(p.url, "https://", "http://", 1) + "/readyz"); err == nil {
		res.Body.Close()
		t.Errorf("plain HTTP on the port of HTTPS: got %s", res.Status)
	}
}
