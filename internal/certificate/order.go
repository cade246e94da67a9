package certificate

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/acme"
)

const (
	challengeType = "tls-alpn-01" // needs no other port than that of HTTPS

	blockKey         = "PRIVATE KEY"
	blockCertificate = "CERTIFICATE"
)

// order gets a certificate and stores it. One server at a time orders.
func (a *Auto) order(ctx context.Context) error {
	client, err := a.account(ctx)
	if err != nil {
		return fmt.Errorf("ACME account: %w", err)
	}

	order, err := client.AuthorizeOrder(ctx, acme.DomainIDs(a.Host))
	if err != nil {
		return fmt.Errorf("order a certificate: %w", err)
	}

	for _, url := range order.AuthzURLs {
		if err := a.authorize(ctx, client, url); err != nil {
			return fmt.Errorf("prove control of %s by %s, to its port 443: %w", a.Host, challengeType, err)
		}
	}

	if _, err := client.WaitOrder(ctx, order.URI); err != nil {
		return fmt.Errorf("order a certificate: %w", err)
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}

	names := &x509.CertificateRequest{DNSNames: []string{a.Host}}
	request, err := x509.CreateCertificateRequest(rand.Reader, names, key)
	if err != nil {
		return err
	}

	chain, _, err := client.CreateCertFromOrder(ctx, order, request, true)
	if err != nil {
		return fmt.Errorf("issue the certificate: %w", err)
	}

	text, err := encode(chain, key)
	if err != nil {
		return err
	}

	return a.write(ctx, "certificate "+a.Host, text)
}

// account returns a client with the install's account, which it registers once.
func (a *Auto) account(ctx context.Context) (*acme.Client, error) {
	const name = "account"
	text, err := a.read(ctx, name)
	if err != nil {
		return nil, err
	}

	if text == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}

		if text, err = encode(nil, key); err != nil {
			return nil, err
		}
		if err := a.write(ctx, name, text); err != nil {
			return nil, err
		}
	}

	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the stored key is not PEM")
	}

	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}

	client := &acme.Client{
		Key: key.(crypto.Signer), DirectoryURL: a.Directory, HTTPClient: a.http, UserAgent: "socle",
	}
	if _, err := client.Register(ctx, &acme.Account{}, acme.AcceptTOS); err != nil &&
		!errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, err
	}

	return client, nil
}

// authorize answers the challenge of an authorization.
func (a *Auto) authorize(ctx context.Context, client *acme.Client, url string) error {
	authorization, err := client.GetAuthorization(ctx, url)
	if err != nil || authorization.Status == acme.StatusValid {
		return err
	}

	var challenge *acme.Challenge
	for _, c := range authorization.Challenges {
		if c.Type == challengeType {
			challenge = c
		}
	}
	if challenge == nil {
		return errors.New("the service does not offer the challenge")
	}

	answer, err := client.TLSALPN01ChallengeCert(challenge.Token, a.Host)
	if err != nil {
		return err
	}
	if err := a.publish(ctx, &answer); err != nil {
		return err
	}
	defer a.retract(ctx)

	if _, err := client.Accept(ctx, challenge); err != nil {
		return err
	}

	_, err = client.WaitAuthorization(ctx, url)
	return err
}

// publish makes all servers answer the challenge, and returns when none remembers that there was
// none to answer.
func (a *Auto) publish(ctx context.Context, answer *tls.Certificate) error {
	text, err := encode(answer.Certificate, answer.PrivateKey)
	if err != nil {
		return err
	}

	if err := a.write(ctx, "challenge "+a.Host, text); err != nil {
		return err
	}

	timer := time.NewTimer(challengeTTL)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// retract removes the answer of a challenge. A leftover one is replaced by the next order.
func (a *Auto) retract(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), challengeTimeout)
	defer cancel()

	if err := a.Store.DeleteCertificate(ctx, "challenge "+a.Host); err != nil {
		a.Log.Warn("could not remove the answer of a challenge", "error", err)
	}
}

// encode returns a key and its chain of certificates as PEM.
func encode(chain [][]byte, key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}

	var text bytes.Buffer
	if err := pem.Encode(&text, &pem.Block{Type: blockKey, Bytes: der}); err != nil {
		return nil, err
	}

	for _, c := range chain {
		if err := pem.Encode(&text, &pem.Block{Type: blockCertificate, Bytes: c}); err != nil {
			return nil, err
		}
	}

	return text.Bytes(), nil
}
