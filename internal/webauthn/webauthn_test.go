package webauthn

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/socle-dev/socle/internal/webauthn/webauthntest"
)

var expected = Expected{RelyingParty: RelyingParty{ID: "example.com", Origins: []string{"https://app.example.com"}},
	Challenge: []byte("0123456789abcdef0123456789abcdef"), Verification: true}

func newAuthenticator(t *testing.T, algorithm int) *webauthntest.Authenticator {
	t.Helper()
	return webauthntest.New(t, algorithm, expected.Origins[0], expected.ID)
}

func parse(t *testing.T, text string) Response {
	t.Helper()

	var r Response
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}

	return r
}

func TestAlgorithms(t *testing.T) {
	t.Parallel()

	for _, algorithm := range Algorithms {
		a := newAuthenticator(t, algorithm)
		c, err := Register(parse(t, a.Create(expected.Challenge)), expected)
		if err != nil {
			t.Fatalf("%d: %v", algorithm, err)
		}

		a.Counter++
		if c, err = Authenticate(parse(t, a.Get(expected.Challenge)), c, expected); err != nil || c.SignCount != 2 {
			t.Errorf("%d: got counter %d, %v", algorithm, c.SignCount, err)
		}

		if other := newAuthenticator(t, algorithm); algorithm != Algorithms[2] {
			if _, err := Register(parse(t, other.Attest("packed", expected.Challenge)), expected); err != nil {
				t.Errorf("%d: attestation by itself: %v", algorithm, err)
			}
		}
	}
}

// TestRefusals changes one thing at a time.
func TestRefusals(t *testing.T) {
	t.Parallel()

	type authenticator = webauthntest.Authenticator
	for name, tt := range map[string]struct {
		change func(*authenticator)
		want   error
	}{
		"origin":          {func(a *authenticator) { a.Origin = "https://evil.example" }, ErrOrigin},
		"origin's suffix": {func(a *authenticator) { a.Origin += ".evil.example" }, ErrOrigin},
		"scheme":          {func(a *authenticator) { a.Origin = "http://app.example.com" }, ErrOrigin},
		"frame":           {func(a *authenticator) { a.CrossOrigin = true }, ErrInvalid},
		"relying party":   {func(a *authenticator) { a.RelyingParty = "app.example.com" }, ErrInvalid},
		"presence":        {func(a *authenticator) { a.Flags = 4 }, ErrInvalid},
		"verification":    {func(a *authenticator) { a.Flags = 1 }, ErrInvalid},
		"backup":          {func(a *authenticator) { a.Flags = 1 | 4 | 16 }, ErrBackup},
		"trailing bytes":  {func(a *authenticator) { a.Flags = 1 | 4 | 128 }, ErrInvalid},
	} {
		a := newAuthenticator(t, Algorithms[0])
		c, err := Register(parse(t, a.Create(expected.Challenge)), expected)
		if err != nil {
			t.Fatal(err)
		}

		a.Counter++
		tt.change(a)
		if _, err := Register(parse(t, a.Create(expected.Challenge)), expected); !errors.Is(err, tt.want) {
			t.Errorf("%s of a creation: got %v, want %v", name, err, tt.want)
		}
		if _, err := Authenticate(parse(t, a.Get(expected.Challenge)), c, expected); !errors.Is(err, tt.want) {
			t.Errorf("%s of an assertion: got %v, want %v", name, err, tt.want)
		}
	}

	a := newAuthenticator(t, Algorithms[0])
	created, asserted := parse(t, a.Create(expected.Challenge)), parse(t, a.Get(expected.Challenge))
	foreign := parse(t, a.Attest("fido-u2f", expected.Challenge))
	c, err := Register(created, expected)
	if err != nil {
		t.Fatal(err)
	}

	register := func(change func(*Response, *Expected)) error {
		r, want := parse(t, a.Create(expected.Challenge)), expected
		change(&r, &want)
		_, err := Register(r, want)
		return err
	}
	authenticate := func(change func(*Response, *Credential)) error {
		a.Counter++
		r, c := parse(t, a.Get(expected.Challenge)), c
		change(&r, &c)
		_, err := Authenticate(r, c, expected)
		return err
	}

	for name, got := range map[string]struct{ err, want error }{
		"another challenge": {register(func(_ *Response, e *Expected) { e.Challenge = []byte("x") }), ErrInvalid},
		"no challenge":      {register(func(_ *Response, e *Expected) { e.Challenge = nil }), ErrChallenge},
		"an assertion":      {register(func(r *Response, _ *Expected) { *r = asserted }), ErrInvalid},
		"another kind":      {register(func(r *Response, _ *Expected) { r.Type = "password" }), ErrInvalid},
		"another id":        {register(func(r *Response, _ *Expected) { r.RawID = Bytes("x") }), ErrInvalid},
		"no object":         {register(func(r *Response, _ *Expected) { r.Response.AttestationObject = nil }), ErrInvalid},
		"no client data":    {register(func(r *Response, _ *Expected) { r.Response.ClientDataJSON = nil }), ErrInvalid},
		"attestation":       {register(func(r *Response, _ *Expected) { *r = foreign }), ErrAttestation},

		"a creation":    {authenticate(func(r *Response, _ *Credential) { *r = created }), ErrInvalid},
		"id":            {authenticate(func(_ *Response, c *Credential) { c.ID = []byte("x") }), ErrCredential},
		"key":           {authenticate(func(_ *Response, c *Credential) { c.PublicKey = []byte{0xa0} }), ErrKey},
		"counter":       {authenticate(func(_ *Response, c *Credential) { c.SignCount = 1000 }), ErrCounter},
		"made eligible": {authenticate(func(_ *Response, c *Credential) { c.BackupEligible = true }), ErrCredential},
		"signature":     {authenticate(func(r *Response, _ *Credential) { r.Response.Signature[8] ^= 1 }), ErrInvalid},
		"signed data": {authenticate(func(r *Response, _ *Credential) { r.Response.AuthenticatorData[36] ^= 1 }),
			ErrInvalid},
		"truncated data": {authenticate(func(r *Response, _ *Credential) {
			r.Response.AuthenticatorData = r.Response.AuthenticatorData[:36]
		}), ErrInvalid},
	} {
		if !errors.Is(got.err, got.want) {
			t.Errorf("%s: got %v, want %v", name, got.err, got.want)
		}
	}
}

// TestCounterOfNone accepts authenticators without a counter.
func TestCounterOfNone(t *testing.T) {
	t.Parallel()

	a := newAuthenticator(t, Algorithms[1])
	a.Counter = 0
	c, err := Register(parse(t, a.Create(expected.Challenge)), expected)
	if err != nil {
		t.Fatal(err)
	}

	for range 2 {
		if c, err = Authenticate(parse(t, a.Get(expected.Challenge)), c, expected); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKeysRefused(t *testing.T) {
	t.Parallel()

	for name, key := range map[string][]byte{
		"point off the curve": webauthntest.Map(1, 2, 3, -7, -1, 1, -2, make([]byte, 32), -3, make([]byte, 32)),
		"short point":         webauthntest.Map(1, 2, 3, -7, -1, 1, -2, make([]byte, 31), -3, make([]byte, 32)),
		"another curve":       webauthntest.Map(1, 2, 3, -7, -1, 2, -2, make([]byte, 32), -3, make([]byte, 32)),
		"another algorithm":   webauthntest.Map(1, 2, 3, -35, -1, 1),
		"short Ed25519":       webauthntest.Map(1, 1, 3, -8, -1, 6, -2, []byte("x")),
		"short RSA":           webauthntest.Map(1, 3, 3, -257, -1, slices.Repeat([]byte{255}, 128), -2, []byte{1, 0, 1}),
		"even exponent":       webauthntest.Map(1, 3, 3, -257, -1, slices.Repeat([]byte{255}, 256), -2, []byte{4}),
		"no map":              {0x01},
	} {
		a := newAuthenticator(t, Algorithms[0])
		a.Key = key
		if _, err := Register(parse(t, a.Create(expected.Challenge)), expected); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
		if err := checkKey(key); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestStoredKey: keys that were stored as authenticators wrote them, before the library wrote them
// anew, still verify.
func TestStoredKey(t *testing.T) {
	t.Parallel()

	for _, algorithm := range Algorithms {
		a := newAuthenticator(t, algorithm)
		c := Credential{ID: a.ID, PublicKey: a.Key}
		if _, err := Authenticate(parse(t, a.Get(expected.Challenge)), c, expected); err != nil {
			t.Errorf("%d: %v", algorithm, err)
		}
	}
}

func FuzzRegister(f *testing.F) {
	f.Add([]byte{0xa3})
	f.Add(webauthntest.Map("fmt", "none", "attStmt", webauthntest.Raw{0xa0}, "authData", make([]byte, 60)))

	client := []byte(`{"type": "webauthn.create", "origin": "` + expected.Origins[0] + `", "challenge": "` +
		expected.challenge() + `"}`)
	f.Fuzz(func(t *testing.T, object []byte) {
		r := Response{RawID: Bytes("x"), Type: "public-key"}
		r.Response.ClientDataJSON, r.Response.AttestationObject = client, object
		if _, err := Register(r, expected); err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}
