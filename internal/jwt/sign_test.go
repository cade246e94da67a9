package jwt

import (
	"testing"
	"time"
)

// TestSignRole: a token is verified with its secret, until its time.
func TestSignRole(t *testing.T) {
	t.Parallel()

	secret := []byte("a secret of at least thirty-two bytes")
	v, err := New(Config{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}

	for until, valid := range map[time.Duration]bool{time.Hour: true, -time.Hour: false} {
		text, err := SignRole(secret, "anon", time.Now().Add(until))
		if err != nil {
			t.Fatal(err)
		}

		got, err := v.Verify(text)
		if (err == nil) != valid || (valid && got.Role != "anon") {
			t.Errorf("until %s: got %+v, %v", until, got, err)
		}
	}
}
