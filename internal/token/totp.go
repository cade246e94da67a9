package token

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	totpPeriod         = 30 // seconds per code
	totpSecretSize     = 20 // bytes; the key size recommended for HMAC-SHA1
	totpSkewSteps      = 1  // accepted steps before and after now, for clock skew and slow typing
	recoveryCodeLength = 10 // characters; 50 bits
)

// RecoveryCodeCount is the size of a user's recovery code set.
const RecoveryCodeCount = 10

// NewTOTPSecret returns a random secret for time-based codes. The parameters are those that every
// authenticator app supports: RFC 6238, 6 digits, SHA-1, 30 seconds.
func NewTOTPSecret() []byte {
	secret := make([]byte, totpSecretSize)
	_, _ = rand.Read(secret) // never fails

	return secret
}

// TOTPText returns a secret in base32, for manual entry.
func TOTPText(secret []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
}

// TOTPURL returns a secret's otpauth URL, for a QR code.
func TOTPURL(secret []byte, issuer, account string) string {
	u := url.URL{Scheme: "otpauth", Host: "totp", Path: "/" + strings.ReplaceAll(issuer, ":", " ") + ":" + account}
	query := url.Values{
		"secret": {TOTPText(secret)}, "issuer": {issuer}, "algorithm": {"SHA1"}, "digits": {"6"}, "period": {"30"},
	}

	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // some apps show the plus

	return u.String()
}

// TOTPStep returns the number of the time step that contains now.
func TOTPStep(now time.Time) int64 { return now.Unix() / totpPeriod }

// TOTPCode returns the code for a step.
func TOTPCode(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(step)))
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 15

	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[offset:])&0x7fffffff%1_000_000)
}

// MatchTOTP returns a code's step among the steps around now. The caller rejects a step that was
// used before.
func MatchTOTP(secret []byte, code string, now time.Time) (step int64, ok bool) {
	for s := TOTPStep(now) - totpSkewSteps; s <= TOTPStep(now)+totpSkewSteps; s++ {
		if subtle.ConstantTimeCompare([]byte(code), []byte(TOTPCode(secret, s))) == 1 {
			step, ok = s, true
		}
	}

	return step, ok
}

// NewRecoveryCodes returns new recovery codes in display form, and their hashes under a key.
func NewRecoveryCodes(key []byte) (codes []string, hashes [][]byte) {
	for range RecoveryCodeCount {
		text := keyEncoding.EncodeToString(NewTOTPSecret())[:recoveryCodeLength]
		code := text[:recoveryCodeLength/2] + "-" + text[recoveryCodeLength/2:]
		codes, hashes = append(codes, code), append(hashes, RecoveryHash(key, code))
	}

	return codes, hashes
}

// RecoveryHash returns a recovery code's stored hash, regardless of how it was typed. It is keyed,
// because the code alone has too little entropy.
func RecoveryHash(key []byte, code string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(code))))

	return mac.Sum(nil)
}

// ParseTOTPText decodes the output of [TOTPText].
func ParseTOTPText(text string) ([]byte, error) {
	return base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text)
}
