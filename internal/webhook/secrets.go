package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/token"
)

const (
	secretSize = 32 // bytes
	// rotationTime is how long the former secret signs too.
	rotationTime = 24 * time.Hour
)

// secrets are the parts of a webhook that nobody is shown. They are stored sealed.
type secrets struct {
	Keys    []string          `json:"keys"`    // signing secrets in Standard Webhooks' form, the current one first
	Until   time.Time         `json:"until"`   // when the others cease to sign
	Headers map[string]string `json:"headers"` // in each request
}

// errLostSecrets is the failure for secrets that another project or install has sealed.
var errLostSecrets = fault.New(fault.Conflict,
	"the secrets were sealed for another project: rotate the secret and set the headers again").WithCode("secrets_lost")

// newSecret returns a signing secret in Standard Webhooks' form.
func newSecret() string {
	key := make([]byte, secretSize)
	_, _ = rand.Read(key) // never fails

	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

func (s secrets) seal(p *projectdb.Project) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}

	return token.Seal(p.WebhookKey(), text)
}

// openSecrets returns what [secrets.seal] sealed for the project.
func openSecrets(p *projectdb.Project, sealed []byte) (s secrets, err error) {
	text, err := token.Open(p.WebhookKey(), sealed)
	if err != nil {
		return secrets{}, err
	}

	return s, json.Unmarshal(text, &s)
}

// signingKeys returns the keys that sign at a time.
func (s secrets) signingKeys(now time.Time) ([][]byte, error) {
	keys := s.Keys
	if now.After(s.Until) {
		keys = keys[:1]
	}

	return outbound.ParseWebhookSecrets(strings.Join(keys, "|"))
}

// withHeaders sets the names of a webhook's headers.
func withHeaders(p *projectdb.Project, w Webhook) Webhook {
	s, _ := openSecrets(p, w.Secrets) // without names if another project has sealed them
	w.Headers = slices.Sorted(maps.Keys(s.Headers))
	if w.Headers == nil {
		w.Headers = []string{}
	}

	return w
}

// RotateSecret replaces a webhook's signing secret and returns the new one. The former one signs
// for a day as well. It fails with NotFound.
func RotateSecret(ctx context.Context, p *projectdb.Project, id uuid.UUID) (Webhook, string, error) {
	secret := newSecret()
	w, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Webhook, error) {
		sealed, err := pg.Value[[]byte](ctx, tx, `select secrets from socle.webhooks where id = @id for update`,
			pgx.StrictNamedArgs{"id": id})
		if err != nil {
			return Webhook{}, err
		}

		next := secrets{Keys: []string{secret}, Until: time.Now().Add(rotationTime)}
		if former, err := openSecrets(p, sealed); err == nil {
			next.Keys, next.Headers = append(next.Keys, former.Keys[0]), former.Headers
		}
		if sealed, err = next.seal(p); err != nil {
			return Webhook{}, err
		}

		return pg.One[Webhook](ctx, tx, `
			update socle.webhooks set secrets = @secrets, updated_at = now() where id = @id returning`+returned,
			pgx.StrictNamedArgs{"id": id, "secrets": sealed})
	})
	if err != nil {
		return Webhook{}, "", err
	}

	return withHeaders(p, w), secret, nil
}
