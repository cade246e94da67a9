package jwt

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"
)

// SignRole returns a token that claims a role until a time, signed with a project's secret (HS256).
func SignRole(secret []byte, role string, until time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"role": role, "iat": time.Now().Unix(), "exp": until.Unix()})
	if err != nil {
		return "", err
	}

	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))

	return text + "." + enc.EncodeToString(mac.Sum(nil)), nil
}
