// Package webauthntest is an authenticator with its browser, for tests.
package webauthntest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"testing"
)

// Authenticator has one credential. Its members can be changed between responses.
type Authenticator struct {
	Origin       string
	RelyingParty string
	UserHandle   []byte
	Flags        byte // response flags: present, verified
	Counter      uint32
	ID           []byte
	CrossOrigin  bool
	Key          []byte // public key in COSE

	t      testing.TB
	signer crypto.Signer
}

// New returns an authenticator with a key for an algorithm: -7, -8 or -257.
func New(t testing.TB, algorithm int, origin, relyingParty string) *Authenticator {
	t.Helper()

	a := &Authenticator{Origin: origin, RelyingParty: relyingParty, Flags: 1 | 4, Counter: 1, ID: []byte(rand.Text()),
		t: t}
	switch algorithm {
	case -7:
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		point, err := key.PublicKey.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		a.signer = key
		a.Key = Map(1, 2, 3, -7, -1, 1, -2, point[1:33], -3, point[33:])
	case -8:
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		a.signer, a.Key = key, Map(1, 1, 3, -8, -1, 6, -2, []byte(public))
	default:
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		a.signer = key
		a.Key = Map(1, 3, 3, -257, -1, key.N.Bytes(), -2, big.NewInt(int64(key.E)).Bytes())
	}

	return a
}

// Map encodes pairs of keys and values in CBOR: ints, strings, byte slices, and CBOR as [Raw].
func Map(pairs ...any) []byte {
	out := head(5, len(pairs)/2)
	for _, v := range pairs {
		switch v := v.(type) {
		case int:
			if v < 0 {
				out = append(out, head(1, -1-v)...)
			} else {
				out = append(out, head(0, v)...)
			}
		case string:
			out = append(append(out, head(3, len(v))...), v...)
		case []byte:
			out = append(append(out, head(2, len(v))...), v...)
		case Raw:
			out = append(out, v...)
		}
	}

	return out
}

// Raw is a value in CBOR.
type Raw []byte

func head(major byte, n int) []byte {
	switch {
	case n < 24:
		return []byte{major<<5 | byte(n)}
	case n < 256:
		return []byte{major<<5 | 24, byte(n)}
	}

	return binary.BigEndian.AppendUint16([]byte{major<<5 | 25}, uint16(n))
}

func (a *Authenticator) clientData(kind string, challenge []byte) []byte {
	text, err := json.Marshal(map[string]any{"type": kind, "origin": a.Origin, "crossOrigin": a.CrossOrigin,
		"challenge": base64.RawURLEncoding.EncodeToString(challenge)})
	if err != nil {
		a.t.Fatal(err)
	}

	return text
}

func (a *Authenticator) data(flags byte) []byte {
	id := sha256.Sum256([]byte(a.RelyingParty))
	return binary.BigEndian.AppendUint32(append(id[:], a.Flags|flags), a.Counter)
}

func (a *Authenticator) sign(data, clientData []byte) []byte {
	hash := sha256.Sum256(clientData)
	message := append(append([]byte{}, data...), hash[:]...)

	digest, options := message, crypto.SignerOpts(crypto.Hash(0))
	if _, ed := a.signer.(ed25519.PrivateKey); !ed {
		sum := sha256.Sum256(message)
		digest, options = sum[:], crypto.SHA256
	}

	signature, err := a.signer.Sign(rand.Reader, digest, options)
	if err != nil {
		a.t.Fatal(err)
	}

	return signature
}

func (a *Authenticator) response(members map[string][]byte) string {
	response := map[string]string{}
	for name, value := range members {
		response[name] = base64.RawURLEncoding.EncodeToString(value)
	}

	id := base64.RawURLEncoding.EncodeToString(a.ID)
	text, err := json.Marshal(map[string]any{"id": id, "rawId": id, "type": "public-key", "response": response,
		"clientExtensionResults": map[string]any{}})
	if err != nil {
		a.t.Fatal(err)
	}

	return string(text)
}

// Create returns the response to a creation, with the attestation none.
func (a *Authenticator) Create(challenge []byte) string { return a.Attest("none", challenge) }

// Attest returns the response to a creation. packed is an attestation by the new key itself.
func (a *Authenticator) Attest(format string, challenge []byte) string {
	data := append(a.data(1<<6), make([]byte, 16)...)
	data = append(append(binary.BigEndian.AppendUint16(data, uint16(len(a.ID))), a.ID...), a.Key...)

	clientData, statement := a.clientData("webauthn.create", challenge), Map()
	if format == "packed" {
		algorithm := map[bool]int{true: -8, false: -7}[len(a.Key) < 50]
		statement = Map("alg", algorithm, "sig", a.sign(data, clientData))
	}

	return a.response(map[string][]byte{"clientDataJSON": clientData,
		"attestationObject": Map("fmt", format, "attStmt", Raw(statement), "authData", data)})
}

// Get returns an assertion.
func (a *Authenticator) Get(challenge []byte) string {
	data, clientData := a.data(0), a.clientData("webauthn.get", challenge)
	return a.response(map[string][]byte{"clientDataJSON": clientData, "authenticatorData": data,
		"signature": a.sign(data, clientData), "userHandle": a.UserHandle})
}
