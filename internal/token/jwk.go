package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
)

// PublicKey is a public JSON Web Key (RFC 7517) that verifies signatures by one algorithm.
type PublicKey struct {
	ID        string // as given, or the thumbprint (RFC 7638)
	Algorithm string // ES256 or RS256
	JSON      []byte // key with id and algorithm, required members only
}

// JWK holds the members of a JSON Web Key that [NewPublicKey] reads. Absent members are empty.
type JWK struct {
	Kind, ID, Algorithm, Use, Curve, X, Y, N, E string
}

// RSA key bounds: smaller keys are insecure, larger ones cost each request too much time.
const (
	minRSABits, maxRSABits = 2048, 4096

	coordinateSize = 32 // bytes, for P-256
)

// NewPublicKey validates a P-256 key or an RSA key with 2048 to 4096 bits. It fails with a
// [JWKError] that names the invalid member.
func NewPublicKey(k JWK) (PublicKey, error) {
	switch {
	case k.Use != "" && k.Use != "sig":
		return PublicKey{}, &JWKError{"use", "must be sig"}
	case k.Kind == "EC":
		return ellipticKey(k)
	case k.Kind == "RSA":
		return rsaKey(k)
	}

	return PublicKey{}, &JWKError{"kty", "must be EC or RSA"}
}

// JWKError describes an invalid member in a JSON Web Key.
type JWKError struct{ Member, Text string }

func (e *JWKError) Error() string { return e.Member + " " + e.Text }

func ellipticKey(k JWK) (PublicKey, error) {
	if k.Algorithm != "" && k.Algorithm != "ES256" {
		return PublicKey{}, &JWKError{"alg", "must be ES256 for a key of this kind"}
	}
	if k.Curve != "P-256" {
		return PublicKey{}, &JWKError{"crv", "must be P-256"}
	}

	x, err := decodeOctets(k.X, coordinateSize)
	if err != nil {
		return PublicKey{}, &JWKError{"x", "must be a coordinate of a point of P-256"}
	}

	y, err := decodeOctets(k.Y, coordinateSize)
	if err != nil {
		return PublicKey{}, &JWKError{"y", "must be a coordinate of a point of P-256"}
	}

	if _, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...)); err != nil {
		return PublicKey{}, &JWKError{"y", "must be a point of P-256 together with x"}
	}

	return publicKey(k.ID, "ES256", map[string]string{"kty": "EC", "crv": "P-256", "x": k.X, "y": k.Y})
}

func rsaKey(k JWK) (PublicKey, error) {
	if k.Algorithm != "" && k.Algorithm != "RS256" {
		return PublicKey{}, &JWKError{"alg", "must be RS256 for a key of this kind"}
	}

	n, err := decodeOctets(k.N, 0)
	if err != nil {
		return PublicKey{}, &JWKError{"n", "must be a modulus in base64url"}
	}

	e, err := decodeOctets(k.E, 0)
	if err != nil || len(e) > 4 {
		return PublicKey{}, &JWKError{"e", "must be an exponent of at most 4 bytes in base64url"}
	}

	key := rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits || key.N.Bit(0) == 0 {
		return PublicKey{}, &JWKError{"n", "must be an odd number of 2048 to 4096 bits"}
	}
	if key.E < 3 || key.E%2 == 0 || key.E > 1<<31-1 {
		return PublicKey{}, &JWKError{"e", "must be an odd number of at least 3"}
	}

	return publicKey(k.ID, "RS256", map[string]string{"kty": "RSA", "n": k.N, "e": k.E})
}

// decodeOctets decodes unpadded base64url. A size other than 0 is the required number of bytes.
func decodeOctets(text string, size int) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil && (len(b) == 0 || (size != 0 && len(b) != size)) {
		err = errors.New("token: wrong size")
	}

	return b, err
}

// publicKey returns the key with these defining members.
func publicKey(id, algorithm string, members map[string]string) (PublicKey, error) {
	text, err := json.Marshal(members) // in the order that RFC 7638 requires
	if err != nil {
		return PublicKey{}, err
	}

	if id == "" {
		hash := crypto.SHA256.New()
		hash.Write(text)
		id = base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
	}

	members["kid"], members["alg"], members["use"] = id, algorithm, "sig"
	text, err = json.Marshal(members)
	return PublicKey{ID: id, Algorithm: algorithm, JSON: text}, err
}
