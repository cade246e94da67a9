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

// secrets are the keys of a project, all derived from the secret of the install. A copy of a
// project has others, so no token of one project is valid in another.
type secrets struct {
	signing  token.Key // of access tokens
	previous token.Key // verifies access tokens signed before the last rotation; zero before the first
	refresh  []byte    // of refresh tokens
	links    []byte    // of the tokens in links, and of codes
	factors  []byte    // seals the secrets of second factors
}

func newSecrets(projects *projectdb.Registry, project uuid.UUID, generation int) (secrets, error) {
	s := secrets{
		refresh: projects.EndUserKey(project, "refresh tokens"),
		links:   projects.EndUserKey(project, "one-time tokens"),
		factors: projects.EndUserKey(project, "second factors"),
	}

	seed := projects.EndUserKey(project, "signing keys")
	var err error
	if s.signing, err = token.DeriveSigningKey(seed, fmt.Sprint("generation ", generation)); err != nil {
		return s, err
	}

	if generation > 1 {
		s.previous, err = token.DeriveSigningKey(seed, fmt.Sprint("generation ", generation-1))
	}

	return s, err
}

// PublicKeys returns the public keys of access tokens as JSON Web Keys, the signing one first.
func (d *Directory) PublicKeys() ([]json.RawMessage, error) {
	var keys []json.RawMessage
	for _, k := range []token.Key{d.secrets.signing, d.secrets.previous} {
		if k.ID == "" {
			continue
		}

		text, err := k.PublicJWK()
		if err != nil {
			return nil, err
		}

		keys = append(keys, text)
	}

	return keys, nil
}

// Purposes of tokens that carry the id of a row.
const (
	linkPurpose = "one-time token of an end user"
	flowPurpose = "authorization code of an end user"
)

// link returns the token of a one-time token's link.
func (s secrets) link(id uuid.UUID) string { return token.Link(s.links, linkPurpose, id) }

// authCode returns the code that a client exchanges for a session, with the verifier of its flow.
func (s secrets) authCode(flow uuid.UUID) string { return token.Link(s.links, flowPurpose, flow) }

// code returns the six digits of a one-time token.
func (s secrets) code(id uuid.UUID) string {
	mac := token.MAC(s.links, []byte("six digits"), id[:])
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(mac)%1_000_000)
}

// isCode compares a code with that of a one-time token in constant time.
func (s secrets) isCode(id uuid.UUID, code string) bool {
	return hmac.Equal([]byte(s.code(id)), []byte(code))
}
