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

const (
	minWebhookKey  = 24 // bytes in a webhook signing key
	maxWebhookKeys = 5  // keys that sign one webhook
)

// ParseWebhookSecrets returns the keys in secrets, separated by |. Each has the Standard Webhooks
// form: whsec_ and the key in base64, after an optional version such as v1.
func ParseWebhookSecrets(text string) ([][]byte, error) {
	secrets := strings.Split(text, "|")
	if len(secrets) > maxWebhookKeys {
		return nil, fmt.Errorf("must have at most %d secrets", maxWebhookKeys)
	}

	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, err := parseWebhookSecret(secret)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}

	return keys, nil
}

func parseWebhookSecret(text string) ([]byte, error) {
	base64Key, ok := strings.CutPrefix(strings.TrimPrefix(text, "v1,"), "whsec_")
	key, err := base64.StdEncoding.DecodeString(base64Key)
	switch {
	case !ok, err != nil:
		return nil, errors.New("must be whsec_ and a key in base64, or several with | between them")
	case len(key) < minWebhookKey:
		return nil, fmt.Errorf("must have a key of at least %d bytes", minWebhookKey)
	}

	return key, nil
}

// SignWebhook signs a request with a body by Standard Webhooks, once with each key: a receiver
// accepts it by any key. A receiver that has seen the id before ignores the request.
func SignWebhook(h http.Header, keys [][]byte, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}

	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", timestamp)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
}
