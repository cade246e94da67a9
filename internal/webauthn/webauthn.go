// Package webauthn verifies authenticator responses from a browser: new credentials, and assertions
// by them (W3C Web Authentication, level 3). github.com/go-webauthn/webauthn does the verification;
// this package has the rules that are stricter here.
//
// It has no rows and no challenges: package enduser keeps them. It accepts the attestations none
// and self, since it does not judge authenticators by their makers, and ES256, EdDSA and RS256
// keys.
package webauthn

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
)

// ErrInvalid reports an invalid response.
var ErrInvalid = errors.New("invalid response of an authenticator")

// Failures by rules beyond the library's. Each wraps [ErrInvalid].
var (
	ErrChallenge   = fmt.Errorf("%w: no challenge", ErrInvalid)
	ErrOrigin      = fmt.Errorf("%w: for another origin", ErrInvalid)
	ErrBackup      = fmt.Errorf("%w: backed up without being eligible", ErrInvalid)
	ErrAttestation = fmt.Errorf("%w: an attestation other than none and self", ErrInvalid)
	ErrKey         = fmt.Errorf("%w: key", ErrInvalid)
	ErrCredential  = fmt.Errorf("%w: of another credential", ErrInvalid)
	ErrCounter     = fmt.Errorf("%w: the counter went back, so the authenticator was cloned", ErrInvalid)
)

// invalid wraps a failure from the library.
func invalid(err error) error { return fmt.Errorf("%w: %w", ErrInvalid, err) }

// RelyingParty is the application that credentials are for.
type RelyingParty struct {
	ID      string   // domain
	Origins []string // page or app origins
}

// Expected holds a response's requirements.
type Expected struct {
	RelyingParty
	Challenge    []byte
	Verification bool // the authenticator must have verified the user, by a PIN or a finger
}

// Bytes are bytes in base64url without padding.
type Bytes []byte

// UnmarshalText decodes base64url, with or without padding.
func (b *Bytes) UnmarshalText(text []byte) error {
	value, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(text), "="))
	*b = value

	return err
}

// MarshalText encodes the bytes.
func (b Bytes) MarshalText() ([]byte, error) {
	return []byte(base64.RawURLEncoding.EncodeToString(b)), nil
}

// Response is an authenticator's response, as browsers serialize it.
type Response struct {
	RawID    Bytes  `json:"rawId"`
	Type     string `json:"type"`
	Response struct {
		ClientDataJSON    Bytes    `json:"clientDataJSON"`
		AttestationObject Bytes    `json:"attestationObject"` // new credential only
		Transports        []string `json:"transports"`
		AuthenticatorData Bytes    `json:"authenticatorData"` // assertion only
		Signature         Bytes    `json:"signature"`
		UserHandle        Bytes    `json:"userHandle"`
	} `json:"response"`
}

// Credential is a user's key pair on an authenticator.
type Credential struct {
	ID             []byte
	PublicKey      []byte // in COSE
	AAGUID         [16]byte
	SignCount      uint32
	BackupEligible bool // may be synchronized among devices
	BackedUp       bool
}

// Register returns the credential in a response to a creation.
func Register(r Response, want Expected) (Credential, error) {
	creation := protocol.CredentialCreationResponse{PublicKeyCredential: r.credential(),
		AttestationResponse: protocol.AuthenticatorAttestationResponse{
			AuthenticatorResponse: r.clientData(), AttestationObject: r.Response.AttestationObject.encoded()}}
	response, err := creation.Parse()
	if err != nil {
		return Credential{}, invalid(err)
	}

	object := &response.Response.AttestationObject
	if err := want.checkClient(&response.Response.CollectedClientData, object.AuthData.Flags); err != nil {
		return Credential{}, err
	}
	if !isUncertified(object) {
		return Credential{}, ErrAttestation
	}

	if _, err := response.Verify(want.challenge(), want.ID, want.Origins, nil, nil,
		protocol.TopOriginExplicitVerificationMode, false, want.Verification, true, nil, parameters(),
		protocol.AttestationPolicy{}, protocol.SignaturePolicy{}); err != nil {
		return Credential{}, invalid(err)
	}

	data := &object.AuthData
	if len(data.AttData.CredentialID) == 0 {
		return Credential{}, ErrCredential
	}
	if err := checkKey(data.AttData.CredentialPublicKey); err != nil {
		return Credential{}, err
	}

	return Credential{ID: data.AttData.CredentialID, PublicKey: data.AttData.CredentialPublicKey,
		AAGUID: [16]byte(data.AttData.AAGUID), SignCount: data.Counter,
		BackupEligible: data.Flags.HasBackupEligible(), BackedUp: data.Flags.HasBackupState()}, nil
}

// isUncertified reports whether an attestation is none, or one by the new key itself.
func isUncertified(object *protocol.AttestationObject) bool {
	switch protocol.AttestationFormat(object.Format) {
	case protocol.AttestationFormatNone:
		return true
	case protocol.AttestationFormatPacked:
		_, hasCertificates := object.AttStatement["x5c"]
		_, anonymous := object.AttStatement["ecdaaKeyId"]
		return !hasCertificates && !anonymous
	}

	return false
}

// Authenticate verifies an assertion by a credential, and returns the credential with its new
// counter and backup state.
func Authenticate(r Response, c Credential, want Expected) (Credential, error) {
	assertion := protocol.CredentialAssertionResponse{PublicKeyCredential: r.credential(),
		AssertionResponse: protocol.AuthenticatorAssertionResponse{AuthenticatorResponse: r.clientData(),
			AuthenticatorData: r.Response.AuthenticatorData.encoded(), Signature: r.Response.Signature.encoded()}}
	response, err := assertion.Parse()
	if err != nil {
		return c, invalid(err)
	}

	data := &response.Response.AuthenticatorData
	if err := want.checkClient(&response.Response.CollectedClientData, data.Flags); err != nil {
		return c, err
	}
	if !bytes.Equal(r.RawID, c.ID) {
		return c, ErrCredential
	}
	if err := checkKey(c.PublicKey); err != nil {
		return c, err
	}

	if err := response.Verify(want.challenge(), want.ID, "", want.Origins, nil, nil,
		protocol.TopOriginExplicitVerificationMode, false, want.Verification, true, c.PublicKey,
		protocol.SignaturePolicy{}); err != nil {
		return c, invalid(err)
	}

	// Authenticators without a counter send 0.
	if (data.Counter > 0 || c.SignCount > 0) && data.Counter <= c.SignCount {
		return c, ErrCounter
	}
	if data.Flags.HasBackupEligible() != c.BackupEligible {
		return c, ErrCredential
	}

	c.SignCount, c.BackedUp = data.Counter, data.Flags.HasBackupState()
	return c, nil
}

// credential returns the members that all responses have, in the library's form.
func (r Response) credential() protocol.PublicKeyCredential {
	id := base64.RawURLEncoding.EncodeToString(r.RawID)
	return protocol.PublicKeyCredential{Credential: protocol.Credential{ID: id, Type: r.Type},
		RawID: r.RawID.encoded()}
}

func (r Response) clientData() protocol.AuthenticatorResponse {
	return protocol.AuthenticatorResponse{ClientDataJSON: r.Response.ClientDataJSON.encoded()}
}

func (b Bytes) encoded() protocol.URLEncodedBase64 { return protocol.URLEncodedBase64(b) }

// challenge returns the challenge as the client data has it.
func (e Expected) challenge() string { return base64.RawURLEncoding.EncodeToString(e.Challenge) }

// checkClient rejects responses that the library accepts: with an empty challenge, with an origin
// that differs by case or a path, and with flags that contradict each other.
func (e Expected) checkClient(client *protocol.CollectedClientData, flags protocol.AuthenticatorFlags) error {
	switch {
	case len(e.Challenge) == 0:
		return ErrChallenge
	case !slices.Contains(e.Origins, client.Origin):
		return ErrOrigin
	case flags.HasBackupState() && !flags.HasBackupEligible():
		return ErrBackup
	}

	return nil
}
