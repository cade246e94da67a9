package webauthn

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"math/big"
)

// Algorithms are those of accepted keys, by their numbers in COSE, the preferred one first: ES256,
// EdDSA and RS256.
var Algorithms = []int{algES256, algEdDSA, algRS256}

const (
	algES256 = -7
	algEdDSA = -8
	algRS256 = -257
)

// Members of a key in COSE (RFC 9053).
const (
	coseType      = int64(1)
	coseAlgorithm = int64(3)
	coseCurve     = int64(-1) // n of RSA
	coseX         = int64(-2) // e of RSA
	coseY         = int64(-3)
)

// Bounds of RSA keys.
const (
	minRSABits = 2048
	maxRSABits = 4096
)

var errKey = errors.New("invalid public key, or none of ES256, EdDSA and RS256")

// publicKey is a key with its algorithm.
type publicKey struct {
	algorithm int64
	key       crypto.PublicKey
}

// parseKey returns the first key of data and the rest.
func parseKey(data []byte) (publicKey, []byte, error) {
	value, rest, err := decodeCBOR(data)
	if err != nil {
		return publicKey{}, nil, err
	}

	members, _ := value.(map[any]any)
	kind, _ := members[coseType].(int64)
	algorithm, _ := members[coseAlgorithm].(int64)
	curve, _ := members[coseCurve].(int64)
	x, _ := members[coseX].([]byte)
	k := publicKey{algorithm: algorithm}

	switch {
	case kind == 2 && algorithm == algES256 && curve == 1:
		y, _ := members[coseY].([]byte)
		if len(x) != 32 || len(y) != 32 {
			return k, nil, errKey
		}
		point := append(append([]byte{4}, x...), y...)
		if k.key, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point); err != nil {
			return k, nil, errKey
		}
	case kind == 1 && algorithm == algEdDSA && curve == 6:
		if len(x) != ed25519.PublicKeySize {
			return k, nil, errKey
		}
		k.key = ed25519.PublicKey(x)
	case kind == 3 && algorithm == algRS256:
		n, _ := members[coseCurve].([]byte)
		modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(x)
		if modulus.BitLen() < minRSABits || modulus.BitLen() > maxRSABits || exponent.BitLen() > 31 ||
			exponent.Cmp(big.NewInt(3)) < 0 || exponent.Bit(0) == 0 {
			return k, nil, errKey
		}
		k.key = &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}
	default:
		return k, nil, errKey
	}

	return k, rest, nil
}

// verifies reports whether a signature of data is valid.
func (k publicKey) verifies(data, signature []byte) bool {
	sum := sha256.Sum256(data)
	switch key := k.key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], signature)
	case ed25519.PublicKey:
		return ed25519.Verify(key, data, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
	}

	return false
}
