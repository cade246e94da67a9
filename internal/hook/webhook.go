package hook

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/outbound"
)

// Webhook is a JSON text for a project's endpoint.
type Webhook struct {
	URL     string
	Secrets string    // signing secrets, see [outbound.ParseWebhookSecrets]; "": unsigned, for functions only
	ID      uuid.UUID // the same in all attempts
	Body    []byte
}

// Request returns the webhook's request, signed by Standard Webhooks.
func (w Webhook) Request(ctx context.Context) (*http.Request, error) {
	var keys [][]byte
	if w.Secrets != "" || NeedsSecret(w.URL) {
		var err error
		if keys, err = outbound.ParseWebhookSecrets(w.Secrets); err != nil {
			return nil, err
		}
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(w.Body))
	if err != nil {
		return nil, err
	}

	r.Header.Set("Content-Type", "application/json")
	outbound.SignWebhook(r.Header, keys, w.ID.String(), time.Now(), w.Body)

	return r, nil
}
