package enduser

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/token"
)

// keys are the keys of a project, all derived from the secret of the install. A copy of a
// project has others, so no token of one project is valid in another.
type keys struct {
	signingKey  token.Key // signs access tokens
	previousKey token.Key // verifies access tokens from before the last rotation; zero before the first

	refreshKey       []byte // HMAC key for refresh tokens of the application
	clientRefreshKey []byte // HMAC key for refresh tokens of OAuth clients
	linkKey          []byte // HMAC key for links, authorization codes and one-time codes

	factorKey   []byte // seals the secrets of second factors
	flowKey     []byte // seals sign-ins with providers that are under way
	providerKey []byte // seals tokens of providers
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

// signingKeys returns the keys of access tokens: the current one and the previous one, which is
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

// Purposes of tokens that carry the id of a row.
const (
	linkPurpose    = "one-time token of an end user"
	flowPurpose    = "authorization code of an end user"
	bindingPurpose = "browser of a sign-in with a provider"
)

// link returns the token of a one-time token's link.
func (k keys) link(id uuid.UUID) string { return token.Link(k.linkKey, linkPurpose, id) }

// authCode returns the code that a client exchanges for a session, with the verifier of its flow.
func (k keys) authCode(flow uuid.UUID) string { return token.Link(k.linkKey, flowPurpose, flow) }

// code returns the six digits of a one-time token.
func (k keys) code(id uuid.UUID) string {
	mac := token.MAC(k.linkKey, []byte("six digits"), id[:])
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(mac)%1_000_000)
}

// isCode compares a code with that of a one-time token in constant time.
func (k keys) isCode(id uuid.UUID, code string) bool {
	return hmac.Equal([]byte(k.code(id)), []byte(code))
}
