package bus

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"math/big"
	"time"

	"github.com/socle-dev/socle/internal/token"
)

const tlsName = "socle" // in the certificate of every install, whose key is another one

// installName returns a name that only the servers of an install share.
func installName(secret []byte) string {
	return hex.EncodeToString(token.Derive(secret, "name of the messages between servers")[:12])
}

// tlsConfig returns the configuration of both ends of a route. All servers of an install derive the
// same key and certificate, and accept no other one.
func tlsConfig(secret []byte) (*tls.Config, error) {
	key := ed25519.NewKeyFromSeed(token.Derive(secret, "key of the messages between servers"))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: tlsName},
		DNSNames:     []string{tlsName},
		NotBefore:    time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // none (RFC 5280, section 4.1.2.5)
		IsCA:         true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}

	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}

	install := x509.NewCertPool()
	install.AddCert(certificate)

	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: certificate}},
		ServerName:   tlsName,
		RootCAs:      install,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    install,
	}, nil
}
