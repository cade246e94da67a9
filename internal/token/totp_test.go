package token

import (
	"bytes"
	"encoding/base32"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestTOTPCode has the test vectors of RFC 6238, appendix B, reduced to six digits.
func TestTOTPCode(t *testing.T) {
	t.Parallel()

	secret := []byte("12345678901234567890")
	for second, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924",
		2000000000: "279037", 20000000000: "353130",
	} {
		now := time.Unix(second, 0)
		if got := TOTPCode(secret, TOTPStep(now)); got != want {
			t.Errorf("at %d: got %s, want %s", second, got, want)
		}

		for offset, taken := range map[time.Duration]bool{
			-30 * time.Second: true, 0: true, 30 * time.Second: true, -61 * time.Second: false, 61 * time.Second: false,
		} {
			if step, ok := MatchTOTP(secret, want, now.Add(offset)); (second > 61 && ok != taken) ||
				(ok && step != TOTPStep(now)) {
				t.Errorf("%s at %d%+d s: got step %d, %v", want, second, int(offset.Seconds()), step, ok)
			}
		}
	}

	for _, bad := range []string{"", "28708", "2870820", " 287082", "28708２"} {
		if _, ok := MatchTOTP(secret, bad, time.Unix(59, 0)); ok {
			t.Errorf("MatchTOTP(%q) = true, want false", bad)
		}
	}
}

func TestTOTPURL(t *testing.T) {
	t.Parallel()

	secret := NewTOTPSecret()
	u, err := url.Parse(TOTPURL(secret, "Socle of: Ada & Co", "ada+x@example.com"))
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/Socle of  Ada & Co:ada+x@example.com" {
		t.Fatalf("got %v, %v", u, err)
	}

	plain, err := base32.StdEncoding.DecodeString(u.Query().Get("secret"))
	if err != nil || string(plain) != string(secret) || u.Query().Get("issuer") != "Socle of: Ada & Co" {
		t.Errorf("got %v, %v", u.Query(), err)
	}
}

func TestRecoveryCodes(t *testing.T) {
	t.Parallel()

	key := Derive([]byte("key"), "x")
	codes, hashes := NewRecoveryCodes(key)
	if len(codes) != RecoveryCodeCount || len(hashes) != len(codes) {
		t.Fatalf("got %d codes and %d hashes", len(codes), len(hashes))
	}

	seen := map[string]bool{}
	for _, c := range codes {
		if len(c) != 11 || seen[c] {
			t.Errorf("got %q", codes)
		}
		seen[c] = true
	}

	want := hashes[0]
	retyped := " " + strings.ToUpper(strings.ReplaceAll(codes[0], "-", ""))

	if !bytes.Equal(want, RecoveryHash(key, retyped)) || bytes.Equal(want, RecoveryHash(key, codes[1])) ||
		bytes.Equal(want, RecoveryHash([]byte("other"), codes[0])) {
		t.Error("a code's hash depends on how it is typed, or not on the code and the key")
	}
}
