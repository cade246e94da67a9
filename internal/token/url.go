package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// SignURL returns a signed URL's MAC, in base64url, over method, path and payload.
func SignURL(key []byte, method, path, payload string) string {
	return base64.RawURLEncoding.EncodeToString(MAC(key, []byte(method), []byte(path), []byte(payload)))
}

// VerifyURL reports whether mac is the MAC over method, path and payload. A MAC from the previous
// release counts only if its input is unambiguous.
func VerifyURL(key []byte, mac, method, path, payload string) bool {
	if hmac.Equal([]byte(mac), []byte(SignURL(key, method, path, payload))) {
		return true
	}

	return !strings.ContainsAny(path+payload, "\r\n") &&
		hmac.Equal([]byte(mac), []byte(formerURLMAC(key, method, path, payload)))
}

// formerURLMAC is the previous release's MAC. Such URLs live for at most a week.
func formerURLMAC(key []byte, method, path, payload string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(method + "\n" + path + "\n" + payload))

	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
