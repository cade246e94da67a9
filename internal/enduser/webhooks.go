package enduser

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
)

// webhook is a JSON text for an endpoint of the project.
type webhook struct {
	URL    string
	Secret string    // name of the secrets that sign it
	ID     uuid.UUID // the same in all attempts
	Body   []byte
}

// newWebhook returns the request of a webhook, signed by Standard Webhooks.
func (d *Directory) newWebhook(ctx context.Context, w webhook) (*http.Request, error) {
	keys, err := outbound.ParseWebhookSecrets(d.Secrets[w.Secret])
	if err != nil {
		return nil, err
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(w.Body))
	if err != nil {
		return nil, err
	}

	r.Header.Set("Content-Type", "application/json")
	outbound.SignWebhook(r.Header, keys, w.ID.String(), time.Now(), w.Body)

	return r, nil
}

// checkWebhook fails with Unprocessable unless a secret can sign webhooks. required is the text for
// an absent one.
func (s Secrets) checkWebhook(name, required string) error {
	text, ok := s[name]
	if !ok {
		return fault.OnField(fault.Unprocessable, "secrets."+name, "required", "%s", required)
	}
	if _, err := outbound.ParseWebhookSecrets(text); err != nil {
		return fault.OnField(fault.Unprocessable, "secrets."+name, "invalid_format", "%s", err)
	}

	return nil
}
