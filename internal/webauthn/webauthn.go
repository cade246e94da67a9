// Package webauthn verifies the responses of authenticators to a browser: new credentials, and
// assertions by them (W3C Web Authentication, level 3).
//
// It has no rows and no challenges: package enduser keeps them. It accepts the attestations none
// and self, since it judges no authenticators by their makers, and keys of ES256, EdDSA and RS256.
package webauthn

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Failures of a response. Each wraps [ErrInvalid].
var (
	ErrInvalid      = errors.New("invalid response of an authenticator")
	ErrType         = fmt.Errorf("%w: of another type", ErrInvalid)
	ErrChallenge    = fmt.Errorf("%w: for another challenge", ErrInvalid)
	ErrOrigin       = fmt.Errorf("%w: for another origin", ErrInvalid)
	ErrRelyingParty = fmt.Errorf("%w: for another relying party", ErrInvalid)
	ErrPresence     = fmt.Errorf("%w: without the presence of the user", ErrInvalid)
	ErrVerification = fmt.Errorf("%w: without the verification of the user", ErrInvalid)
	ErrAttestation  = fmt.Errorf("%w: an attestation other than none and self", ErrInvalid)
	ErrKey          = fmt.Errorf("%w: key", ErrInvalid)
	ErrCredential   = fmt.Errorf("%w: of another credential", ErrInvalid)
	ErrSignature    = fmt.Errorf("%w: signature", ErrInvalid)
	ErrCounter      = fmt.Errorf("%w: the counter went back, so the authenticator was cloned", ErrInvalid)
)

// RelyingParty is the application that credentials are for.
type RelyingParty struct {
	ID      string   // domain
	Origins []string // of its pages, or of its apps
}

// Expected are the requirements of a response.
type Expected struct {
	RelyingParty
	Challenge    []byte
	Verification bool // the authenticator must have verified the user, by a PIN or a finger
}

// Bytes are bytes in base64url without padding.
type Bytes []byte

// UnmarshalText decodes base64url, with or without padding.
func (b *Bytes) UnmarshalText(text []byte) error {
	decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(text), "="))
	*b = decoded

	return err
}

// MarshalText encodes the bytes.
func (b Bytes) MarshalText() ([]byte, error) {
	return []byte(base64.RawURLEncoding.EncodeToString(b)), nil
}

// Response is the response of an authenticator, as browsers serialize it.
type Response struct {
	RawID    Bytes  `json:"rawId"`
	Type     string `json:"type"`
	Response struct {
		ClientDataJSON    Bytes    `json:"clientDataJSON"`
		AttestationObject Bytes    `json:"attestationObject"` // of a new credential
		Transports        []string `json:"transports"`
		AuthenticatorData Bytes    `json:"authenticatorData"` // of an assertion
		Signature         Bytes    `json:"signature"`
		UserHandle        Bytes    `json:"userHandle"`
	} `json:"response"`
}

// Credential is a key pair of a user on an authenticator.
type Credential struct {
	ID             []byte
	PublicKey      []byte // in COSE
	AAGUID         [16]byte
	SignCount      uint32
	BackupEligible bool // may be synchronized among devices
	BackedUp       bool
}

// Register returns the credential of a response to a creation.
func Register(r Response, want Expected) (Credential, error) {
	hash, err := checkClientData(r, "webauthn.create", want)
	if err != nil {
		return Credential{}, err
	}

	value, rest, err := decodeCBOR(r.Response.AttestationObject)
	object, ok := value.(map[any]any)
	if err != nil || !ok || len(rest) > 0 {
		return Credential{}, ErrInvalid
	}

	raw, _ := object["authData"].([]byte)
	data, err := parseAuthenticatorData(raw)
	if err != nil {
		return Credential{}, err
	}
	if err := data.check(want); err != nil {
		return Credential{}, err
	}

	switch {
	case data.credential == nil:
		return Credential{}, ErrInvalid
	case !bytes.Equal(data.credential.ID, r.RawID):
		return Credential{}, ErrCredential
	}

	if err := checkAttestation(object, data, append(slices.Clone(raw), hash...)); err != nil {
		return Credential{}, err
	}

	return *data.credential, nil
}

// checkAttestation fails unless an attestation is none, or a valid one by the new key itself.
func checkAttestation(object map[any]any, data authenticatorData, signed []byte) error {
	statement, ok := object["attStmt"].(map[any]any)
	switch format, _ := object["fmt"].(string); {
	case !ok:
		return ErrAttestation
	case format == "none" && len(statement) == 0:
		return nil
	case format != "packed" || statement["x5c"] != nil:
		return ErrAttestation
	}

	algorithm, _ := statement["alg"].(int64)
	signature, _ := statement["sig"].([]byte)
	if algorithm != data.key.algorithm || !data.key.verifies(signed, signature) {
		return ErrSignature
	}

	return nil
}

// Authenticate verifies the assertion of a credential, and returns the credential with its new
// counter and state of backup.
func Authenticate(r Response, c Credential, want Expected) (Credential, error) {
	hash, err := checkClientData(r, "webauthn.get", want)
	if err != nil {
		return c, err
	}
	if !bytes.Equal(r.RawID, c.ID) {
		return c, ErrCredential
	}

	data, err := parseAuthenticatorData(r.Response.AuthenticatorData)
	if err != nil {
		return c, err
	}
	if err := data.check(want); err != nil {
		return c, err
	}

	key, rest, err := parseKey(c.PublicKey)
	if err != nil || len(rest) > 0 {
		return c, ErrKey
	}
	if !key.verifies(append(slices.Clone([]byte(r.Response.AuthenticatorData)), hash...), r.Response.Signature) {
		return c, ErrSignature
	}

	// Authenticators without a counter send 0.
	if (data.signCount > 0 || c.SignCount > 0) && data.signCount <= c.SignCount {
		return c, ErrCounter
	}
	if data.has(flagBackupEligible) != c.BackupEligible {
		return c, ErrCredential
	}

	c.SignCount, c.BackedUp = data.signCount, data.has(flagBackedUp)
	return c, nil
}

// checkClientData fails unless the browser's part of a response fits, and returns its hash.
func checkClientData(r Response, kind string, want Expected) ([]byte, error) {
	if r.Type != "public-key" {
		return nil, ErrType
	}

	var client struct {
		Type        string `json:"type"`
		Challenge   Bytes  `json:"challenge"`
		Origin      string `json:"origin"`
		CrossOrigin bool   `json:"crossOrigin"`
	}
	if json.Unmarshal(r.Response.ClientDataJSON, &client) != nil {
		return nil, ErrInvalid
	}

	switch {
	case client.Type != kind:
		return nil, ErrType
	case len(want.Challenge) == 0 || subtle.ConstantTimeCompare(client.Challenge, want.Challenge) != 1:
		return nil, ErrChallenge
	case client.CrossOrigin || !slices.Contains(want.Origins, client.Origin): // a page in a frame of another
		return nil, ErrOrigin
	}

	sum := sha256.Sum256(r.Response.ClientDataJSON)
	return sum[:], nil
}

// Flags of authenticator data.
const (
	flagPresent        = 1 << 0
	flagVerified       = 1 << 2
	flagBackupEligible = 1 << 3
	flagBackedUp       = 1 << 4
	flagCredential     = 1 << 6
	flagExtensions     = 1 << 7
)

const maxCredentialID = 1023 // bytes, by the standard

// authenticatorData is the authenticator's part of a response.
type authenticatorData struct {
	relyingParty []byte // hash of its id
	flags        byte
	signCount    uint32
	credential   *Credential // nil in an assertion
	key          publicKey   // of the credential
}

func (d authenticatorData) has(flag byte) bool { return d.flags&flag != 0 }

func parseAuthenticatorData(data []byte) (authenticatorData, error) {
	const head = 32 + 1 + 4
	if len(data) < head {
		return authenticatorData{}, ErrInvalid
	}

	d := authenticatorData{relyingParty: data[:32], flags: data[32], signCount: binary.BigEndian.Uint32(data[33:head])}
	rest := data[head:]
	if d.has(flagCredential) {
		if len(rest) < 18 {
			return d, ErrInvalid
		}

		c := Credential{AAGUID: [16]byte(rest[:16]), SignCount: d.signCount, BackupEligible: d.has(flagBackupEligible),
			BackedUp: d.has(flagBackedUp)}
		size := int(binary.BigEndian.Uint16(rest[16:18]))
		if rest = rest[18:]; size == 0 || size > maxCredentialID || size > len(rest) {
			return d, ErrInvalid
		}
		c.ID, rest = rest[:size:size], rest[size:]

		key, after, err := parseKey(rest)
		if err != nil {
			return d, ErrKey
		}
		c.PublicKey, rest = rest[:len(rest)-len(after)], after
		d.credential, d.key = &c, key
	}

	if d.has(flagExtensions) {
		value, after, err := decodeCBOR(rest)
		if _, ok := value.(map[any]any); err != nil || !ok {
			return d, ErrInvalid
		}
		rest = after
	}
	if len(rest) > 0 {
		return d, ErrInvalid
	}

	return d, nil
}

// check fails unless the data fits the requirements.
func (d authenticatorData) check(want Expected) error {
	id := sha256.Sum256([]byte(want.ID))
	switch {
	case !bytes.Equal(d.relyingParty, id[:]):
		return ErrRelyingParty
	case !d.has(flagPresent):
		return ErrPresence
	case want.Verification && !d.has(flagVerified):
		return ErrVerification
	case d.has(flagBackedUp) && !d.has(flagBackupEligible):
		return ErrInvalid
	}

	return nil
}
