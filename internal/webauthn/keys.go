package webauthn

import (
	"math/big"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
)

// Algorithms are the accepted key algorithms, by COSE number, the preferred one first: ES256, EdDSA
// and RS256.
var Algorithms = []int{
	int(webauthncose.AlgES256), int(webauthncose.AlgEdDSA), int(webauthncose.AlgRS256),
}

// RSA key bounds, in bits.
const (
	minRSABits = 2048
	maxRSABits = 4096
)

// parameters are the accepted algorithms for the library.
func parameters() []protocol.CredentialParameter {
	all := make([]protocol.CredentialParameter, len(Algorithms))
	for i, algorithm := range Algorithms {
		all[i] = protocol.CredentialParameter{Type: protocol.PublicKeyCredentialType,
			Algorithm: webauthncose.COSEAlgorithmIdentifier(algorithm)}
	}

	return all
}

// checkKey fails for a COSE key that is invalid, or too weak or too large.
func checkKey(key []byte) error {
	publicKey, err := webauthncose.ParsePublicKey(key)
	if err != nil {
		return ErrKey
	}

	if k, ok := publicKey.(webauthncose.RSAPublicKeyData); ok {
		modulus, exponent := new(big.Int).SetBytes(k.Modulus), new(big.Int).SetBytes(k.Exponent)
		if modulus.BitLen() < minRSABits || modulus.BitLen() > maxRSABits || exponent.BitLen() > 31 ||
			exponent.Cmp(big.NewInt(3)) < 0 || exponent.Bit(0) == 0 {
			return ErrKey
		}
	}

	return nil
}
