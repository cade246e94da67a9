package storageapi

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// The actions that a signed URL's token permits.
const (
	scopeDownload = "download"
	scopeUpload   = "upload"
	scopeRender   = "render"
)

// grant is the token content in a signed URL: one action on one object. Policies decided when it
// was signed, and are not asked again. It names the bucket by UUID, so that it is void for a later
// bucket with the same ID.
type grant struct {
	Scope     string    `json:"scope"`
	Bucket    uuid.UUID `json:"bucket"`
	Name      string    `json:"name"`
	Owner     string    `json:"owner,omitempty"`     // upload owner
	Upsert    bool      `json:"upsert,omitempty"`    // the upload may replace an object
	Transform string    `json:"transform,omitempty"` // picture variant for a render
	Expires   int64     `json:"exp"`                 // Unix time in seconds
}

// sign returns a grant's token, which is valid in this project.
func (c *call) sign(g grant) (string, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return "", err
	}

	return encodeToken(text) + "." + encodeToken(c.mac(text)), nil
}

// verify returns the grant in a token, and the bucket in path, which has the form bucket ID/object
// name. It fails unless the token was signed for this action on this object. The failure does not
// reveal whether the bucket exists.
func (c *call) verify(text, scope, path string) (grant, object.Container, error) {
	payload, mac, _ := strings.Cut(text, ".")
	body, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil || !hmac.Equal([]byte(mac), []byte(encodeToken(c.mac(body)))) {
		return grant{}, object.Container{}, fault.New(fault.Invalid, "invalid signature").WithCode("InvalidJWT")
	}

	var g grant
	if err := json.Unmarshal(body, &g); err != nil {
		return g, object.Container{}, err
	}

	switch {
	case g.Scope != scope:
		return g, object.Container{}, invalidSignature("Token is not scoped for " + scope)
	case g.Expires < time.Now().Unix():
		return g, object.Container{},
			fault.New(fault.Invalid, "The provided token has expired.").WithCode("ExpiredToken")
	}

	b, err := c.signedBucket(g, path)
	unescaped, unescapeErr := url.PathUnescape(path)
	if fault.Is(err, fault.Invalid) && unescapeErr == nil && pg.Storable(unescaped) {
		b, err = c.signedBucket(g, unescaped) // the path from a client that escapes the URLs it gets
	}

	return g, b, err
}

// signedBucket returns the bucket in path, which must address the signed object.
func (c *call) signedBucket(g grant, path string) (object.Container, error) {
	if _, name, _ := strings.Cut(path, "/"); name != g.Name {
		return object.Container{}, invalidSignature("Invalid signature")
	}

	b, _, err := c.bucketOf(path)
	if fault.Is(err, fault.NotFound) || (err == nil && b.UUID != g.Bucket) {
		return b, invalidSignature("Invalid signature")
	}

	return b, err
}

func invalidSignature(message string) error {
	return fault.New(fault.Invalid, "%s", message).WithCode("InvalidSignature")
}

// mac returns the MAC over a token's content.
func (c *call) mac(text []byte) []byte { return token.MAC(c.SignKey, c.Database.UUID[:], text) }

func encodeToken(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }
