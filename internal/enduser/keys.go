package enduser

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/token"
)

// keys are a project's keys, all derived from the install's secret. A project's copy has others, so
// no token is valid in another project.
type keys struct {
	signingKey  token.Key // signs access tokens
	previousKey token.Key // verifies access tokens from before the last rotation; zero before the first

	refreshKey       []byte // HMAC key for the application's refresh tokens
	clientRefreshKey []byte // HMAC key for OAuth clients' refresh tokens
	linkKey          []byte // HMAC key for links, authorization codes and one-time codes

	factorKey   []byte // seals second factors' secrets
	flowKey     []byte // seals sign-ins with providers that are under way
	providerKey []byte // seals provider tokens
}

func newKeys(projects *projectdb.Registry, project uuid.UUID, generation int) (keys, error) {
	k := keys{
		refreshKey:       projects.EndUserKey(project, "refresh tokens"),
		clientRefreshKey: projects.EndUserKey(project, "refresh tokens of OAuth clients"),
		linkKey:          projects.EndUserKey(project, "one-time tokens"),
		factorKey:        projects.EndUserKey(project, "second factors"),
		flowKey:          projects.EndUserKey(project, "sign-ins with providers"),
		providerKey:      projects.EndUserKey(project, "tokens of providers"),
	}

	var err error
	k.signingKey, k.previousKey, err = signingKeys(projects, project, generation)

	return k, err
}

// signingKeys returns the keys for access tokens: the current one and the previous one, which is
// zero before the first rotation.
func signingKeys(projects *projectdb.Registry, project uuid.UUID, generation int) (token.Key, token.Key, error) {
	seed := projects.EndUserKey(project, "signing keys")
	current, err := token.DeriveSigningKey(seed, fmt.Sprint("generation ", generation))
	if err != nil || generation <= 1 {
		return current, token.Key{}, err
	}

	previous, err := token.DeriveSigningKey(seed, fmt.Sprint("generation ", generation-1))
	return current, previous, err
}

// Purposes for tokens that carry a row's id.
const (
	linkPurpose    = "one-time token of an end user"
	flowPurpose    = "authorization code of an end user"
	bindingPurpose = "browser of a sign-in with a provider"
)

// link returns the token in a one-time link.
func (k keys) link(id uuid.UUID) string { return token.Link(k.linkKey, linkPurpose, id) }

// authCode returns the code that a client exchanges for a session, with its flow's verifier.
func (k keys) authCode(flow uuid.UUID) string { return token.Link(k.linkKey, flowPurpose, flow) }

// code returns a one-time token's six digits.
func (k keys) code(id uuid.UUID) string {
	mac := token.MAC(k.linkKey, []byte("six digits"), id[:])
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(mac)%1_000_000)
}

// isCode compares a code with a one-time token's in constant time.
func (k keys) isCode(id uuid.UUID, code string) bool {
	return hmac.Equal([]byte(k.code(id)), []byte(code))
}
