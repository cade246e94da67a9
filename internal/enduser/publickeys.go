package enduser

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/token"
)

// PublicKeys returns the public keys for a project's access tokens as JSON Web Keys, the signing
// one first.
func (s *Service) PublicKeys(project uuid.UUID, generation int) ([]json.RawMessage, error) {
	current, previous, err := signingKeys(s.Projects, project, max(generation, 1))
	if err != nil {
		return nil, err
	}

	return formatKeys(current, previous)
}

// PublicKeys is [Service.PublicKeys] for the directory's project.
func (d *Directory) PublicKeys() ([]json.RawMessage, error) {
	return formatKeys(d.keys.signingKey, d.keys.previousKey)
}

// formatKeys returns the keys' public halves as JSON Web Keys, without keys that are zero.
func formatKeys(keys ...token.Key) ([]json.RawMessage, error) {
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

// PublishedKeys returns the public keys for access tokens, and those for ID tokens if the OAuth
// server is on, as JSON Web Keys.
func (d *Directory) PublishedKeys() ([]json.RawMessage, error) {
	all, err := d.PublicKeys()
	if err != nil || !d.OAuthServer.Enabled {
		return all, err
	}

	keys, err := d.idTokenKeys()
	if err != nil {
		return nil, err
	}

	for _, k := range keys {
		text, err := k.PublicJWK()
		if err != nil {
			return nil, err
		}

		all = append(all, text)
	}

	return all, nil
}

// idTokenKeys are the keys that sign ID tokens for OAuth clients, the current one first. They
// differ from the access token keys: an ID token opens no project interface.
func (d *Directory) idTokenKeys() ([]token.Key, error) {
	seed := d.SecretKey("signing keys of ID tokens")
	var all []token.Key
	for generation := d.KeyGeneration; generation > 0 && generation > d.KeyGeneration-2; generation-- {
		k, err := token.DeriveSigningKey(seed, fmt.Sprint("generation ", generation))
		if err != nil {
			return nil, err
		}

		all = append(all, k)
	}

	return all, nil
}

// SignIDToken returns an ID token with these claims, signed by one of [Directory.PublishedKeys].
func (d *Directory) SignIDToken(claims any) (string, error) {
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}

	keys, err := d.idTokenKeys()
	if err != nil {
		return "", err
	}

	return keys[0].SignJWT(text)
}
