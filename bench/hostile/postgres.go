package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// writeCertificate writes a certificate for PostgreSQL clients, and its key, into a folder.
func writeCertificate(dir string) (certificate, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}

	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return "", "", err
	}

	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", err
	}

	certificate, key = filepath.Join(dir, "postgres.crt"), filepath.Join(dir, "postgres.key")
	for name, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			return "", "", err
		}
	}

	return certificate, key, nil
}

// freeAddress returns a loopback address without a listener.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}

	return l.Addr().String(), l.Close()
}

// credential creates a credential for PostgreSQL clients, and returns a connection string.
func (s *environment) credential(a account) (string, error) {
	created, err := s.json("POST", "/projects/"+a.project+"/database-credentials", a,
		fmt.Sprintf(`{"name": "bench %d", "access": "owner"}`, time.Now().UnixNano()))
	if err != nil {
		return "", err
	}

	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=require", created.text("content", "username"),
		created.text("metadata", "password"), s.postgresAddr, a.project), nil
}

// query executes a statement in a session of its own.
func query(ctx context.Context, client, sql string) error {
	conn, err := pgx.Connect(ctx, client)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	_, err = conn.Exec(ctx, sql)
	return err
}
