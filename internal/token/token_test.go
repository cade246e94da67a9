package token

import (
	"bytes"
	"errors"
	"testing"
)

func TestNewSecret(t *testing.T) {
	t.Parallel()

	one, two := NewSecret(), NewSecret()
	if one == two || len(one) != 43 {
		t.Errorf("NewSecret = %q and %q, want two distinct ones of 256 bits", one, two)
	}
	if bytes.Equal(Hash(one), Hash(two)) || !bytes.Equal(Hash(one), Hash(one)) || len(Hash(one)) != 32 {
		t.Errorf("Hash = %x and %x, want one of 32 bytes for each token", Hash(one), Hash(two))
	}
}

func TestDerive(t *testing.T) {
	t.Parallel()

	secret, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	key := Derive(secret, "one purpose")
	if len(key) != 32 || !bytes.Equal(key, Derive(secret, "one purpose")) {
		t.Errorf("Derive = %x, want the same 32 bytes each time", key)
	}
	if bytes.Equal(key, Derive(secret, "another")) || bytes.Equal(key, Derive(other, "one purpose")) ||
		bytes.Equal(key, secret) {
		t.Errorf("Derive = %x for another purpose or secret as well", key)
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()

	secret, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	key := newKey(t)
	sealed, err := key.Seal(secret)
	if err != nil {
		t.Fatal(err)
	}

	opened, err := OpenKey(key.ID, sealed, secret)
	if err != nil || !opened.private.Equal(key.private) || opened.ID != key.ID {
		t.Errorf("OpenKey = %s, %v, want the key that was sealed", opened.ID, err)
	}

	plain, err := key.private.Bytes()
	if err != nil || bytes.Contains(sealed, plain) {
		t.Errorf("the sealed key shows the private key (%v)", err)
	}

	edited := bytes.Clone(sealed)
	edited[len(edited)/2] ^= 1
	for name, open := range map[string]func() (Key, error){
		"wrong secret": func() (Key, error) { return OpenKey(key.ID, sealed, other) },
		"wrong id":     func() (Key, error) { return OpenKey(newKey(t).ID, sealed, secret) },
		"edited":       func() (Key, error) { return OpenKey(key.ID, edited, secret) },
		"cut":          func() (Key, error) { return OpenKey(key.ID, sealed[:10], secret) },
		"empty":        func() (Key, error) { return OpenKey(key.ID, nil, secret) },
	} {
		if _, err := open(); !errors.Is(err, ErrSecret) {
			t.Errorf("OpenKey with %s = %v, want ErrSecret", name, err)
		}
	}
}

func newKey(t testing.TB) Key {
	t.Helper()

	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}

	return key
}
