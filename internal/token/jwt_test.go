package token_test

import (
	"bytes"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"github.com/socle-dev/socle/internal/token"
)

func TestDerivedSigningKey(t *testing.T) {
	t.Parallel()

	secret := bytes.Repeat([]byte("s"), 32)
	a, err1 := token.DeriveSigningKey(secret, "project a")
	again, err2 := token.DeriveSigningKey(secret, "project a")
	b, err3 := token.DeriveSigningKey(secret, "project b")
	if err1 != nil || err2 != nil || err3 != nil || a.ID != again.ID || a.ID == b.ID {
		t.Fatalf("ids %q, %q, %q (%v, %v, %v), want two equal ones and another", a.ID, again.ID, b.ID, err1, err2, err3)
	}

	signed, err := a.SignJWT([]byte(`{"sub":"ann"}`))
	if err != nil {
		t.Fatal(err)
	}

	for id, want := range map[string]bool{a.ID: true, b.ID: false} {
		key := map[string]token.Key{a.ID: a, b.ID: b}[id]
		text, err := key.PublicJWK()
		if err != nil {
			t.Fatal(err)
		}

		public, err := jwk.ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}

		body, err := jws.Verify([]byte(signed), jws.WithKey(jwa.ES256(), public), jws.WithCompact())
		if got := err == nil && string(body) == `{"sub":"ann"}`; got != want {
			t.Errorf("verified with the key %s: %v (%v), want %v", id, got, err, want)
		}
	}
}
