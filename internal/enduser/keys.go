package enduser

import (
	"crypto/hmac"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/token"
)

// keys are the keys of a project, all derived from the secret of the install. A copy of a
// project has others, so no token of one project is valid in another.
type keys struct {
	signing  token.Key // of access tokens
	previous token.Key // verifies access tokens signed before the last rotation; zero before the first
	refresh  []byte    // of refresh tokens

	clientRefresh []byte // of refresh tokens of OAuth clients

	links   []byte // of the tokens in links, and of codes
	factors []byte // seals the secrets of second factors

	flows     []byte // seals sign-ins with providers that are under way
	providers []byte // seals tokens of providers
}

func newKeys(projects *projectdb.Registry, project uuid.UUID, generation int) (keys, error) {
	k := keys{
		refresh: projects.EndUserKey(project, "refresh tokens"),

		clientRefresh: projects.EndUserKey(project, "refresh tokens of OAuth clients"),

		links:   projects.EndUserKey(project, "one-time tokens"),
		factors: projects.EndUserKey(project, "second factors"),

		flows:     projects.EndUserKey(project, "sign-ins with providers"),
		providers: projects.EndUserKey(project, "tokens of providers"),
	}

	var err error
	k.signing, k.previous, err = signingKeys(projects, project, generation)

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

// PublicKeys returns the public keys of a project's access tokens as JSON Web Keys, the signing one
// first.
func (s *Service) PublicKeys(project uuid.UUID, generation int) ([]json.RawMessage, error) {
	current, previous, err := signingKeys(s.Projects, project, max(generation, 1))
	if err != nil {
		return nil, err
	}

	return publicKeys(current, previous)
}

// PublicKeys is [Service.PublicKeys] for the project of the directory.
func (d *Directory) PublicKeys() ([]json.RawMessage, error) {
	return publicKeys(d.keys.signing, d.keys.previous)
}

func publicKeys(keys ...token.Key) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for _, key := range keys {
		if key.ID == "" {
			continue
		}

		text, err := key.PublicJWK()
		if err != nil {
			return nil, err
		}

		all = append(all, text)
	}

	return all, nil
}

// Purposes of tokens that carry the id of a row.
const (
	linkPurpose    = "one-time token of an end user"
	flowPurpose    = "authorization code of an end user"
	bindingPurpose = "browser of a sign-in with a provider"
)

// link returns the token of a one-time token's link.
func (k keys) link(id uuid.UUID) string { return token.Link(k.links, linkPurpose, id) }

// authCode returns the code that a client exchanges for a session, with the verifier of its flow.
func (k keys) authCode(flow uuid.UUID) string { return token.Link(k.links, flowPurpose, flow) }

// code returns the six digits of a one-time token.
func (k keys) code(id uuid.UUID) string {
	mac := token.MAC(k.links, []byte("six digits"), id[:])
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(mac)%1_000_000)
}

// isCode compares a code with that of a one-time token in constant time.
func (k keys) isCode(id uuid.UUID, code string) bool {
	return hmac.Equal([]byte(k.code(id)), []byte(code))
}
