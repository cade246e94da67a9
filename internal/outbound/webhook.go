package outbound

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// minWebhookKey is the minimum number of bytes of a key that signs webhooks.
const minWebhookKey = 24

// ParseWebhookSecret returns the key of a secret in the form of Standard Webhooks: whsec_ and the
// key in base64, after an optional version such as v1.
func ParseWebhookSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(strings.TrimPrefix(text, "v1,"), "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case !ok, err != nil:
		return nil, errors.New("must be whsec_ and a key in base64")
	case len(key) < minWebhookKey:
		return nil, fmt.Errorf("must have a key of at least %d bytes", minWebhookKey)
	}

	return key, nil
}

// SignWebhook signs a request with a body by Standard Webhooks. A receiver that has seen the id
// before ignores the request.
func SignWebhook(h http.Header, key []byte, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)

	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", timestamp)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
