package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/token"
)

// Caller is the identity that a key or a token gives.
type Caller struct {
	Role    string  // "" if a token claims none
	Claims  []byte  // JSON object, a token's claims; nil for a key
	Subject string  // claim sub, "" if it is no text
	Session string  // claim session_id, "" if it is no text
	Member  *Member // platform user behind the request; nil: none
}

// Error codes for refused keys, beside those of package jwt for tokens.
const (
	InvalidKey    = "invalid_key"
	PlatformToken = "platform_token" // a member's platform API token
)

// ErrInvalidKey refuses a key that is not valid for the project.
var ErrInvalidKey = fault.New(fault.Unauthenticated, "The key or token is not valid for this project").
	WithCode(InvalidKey)

var errPlatformToken = fault.New(fault.Unauthenticated, "This is a token for the platform API. "+
	"Applications take a key of the project, or a token of its users").WithCode(PlatformToken)

// keyHash identifies a project's API key by its [token.Hash].
type keyHash struct {
	project uuid.UUID
	hash    [32]byte
}

func (k keyHash) String() string { return string(k.project[:]) + string(k.hash[:]) }

// s3KeyID identifies a project's key for the S3 protocol.
type s3KeyID struct{ project, key uuid.UUID }

func (k s3KeyID) String() string { return string(k.project[:]) + string(k.key[:]) }

// newVerifier returns the verifier of tokens that are signed with the project's secret, or by a key
// of its end users or of its own.
func (p *Project) newVerifier() (*jwt.Verifier, error) {
	config := jwt.Config{Secret: []byte(p.gateway.Projects.JWTSecret(p.UUID)), ForeignAudience: token.Audience}
	signing, err := p.gateway.SigningKeys(p.UUID, p.Settings.EndUsers.KeyGeneration)
	if err != nil {
		return nil, err
	}

	if all := slices.Concat(signing, p.Settings.PublicKeys); len(all) > 0 {
		if config.Keys, err = json.Marshal(map[string]any{"keys": all}); err != nil {
			return nil, err
		}
	}

	v, err := jwt.New(config)
	if err != nil {
		return nil, fmt.Errorf("load the public keys of the project: %w", err)
	}

	return v, nil
}

// Identify is [Project.Verify] for a request that may have a platform user's token, and [AsHeader]
// with it. It fails as the platform API for an invalid token, with [ErrUnknownProject] for a user
// without access to the project, and with Invalid for a header that is malformed, names an unknown
// end user, or comes with other credentials. It does not look up end users of an inactive project.
func (p *Project) Identify(r *http.Request, text string) (Caller, error) {
	caller, err := p.Verify(r.Context(), text)
	switch {
	case err == nil:
		return caller, RefuseAs(r)
	case fault.Of(err).Code != PlatformToken:
		return caller, err
	}

	return p.identifyMember(r, text)
}

// Verify returns the caller behind an API key or a token. It fails with Unauthenticated and a code
// of this package or of package jwt for one that the project does not accept.
func (p *Project) Verify(ctx context.Context, text string) (Caller, error) {
	if !strings.Contains(text, ".") { // an API key, well-formed or not
		return p.verifyKey(ctx, text)
	}

	verified, err := p.tokens.Verify(text)
	request := httpx.From(ctx)
	request.Token, request.Role, request.Subject = err == nil, verified.Role, verified.Subject
	if err != nil && token.IsPlatformJWT(text) {
		err = errPlatformToken
	}

	return Caller{Role: verified.Role, Claims: verified.Claims, Subject: verified.Subject,
		Session: verified.Session}, err
}

// verifyKey returns an API key's caller. It refuses a malformed key without a query.
func (p *Project) verifyKey(ctx context.Context, text string) (Caller, error) {
	request := httpx.From(ctx)
	id := keyHash{p.UUID, token.Sum(text)}

	r, ok := p.gateway.keys.cached(request.Start, id)
	if !ok && !token.IsAPIKey(text) {
		if token.IsPersonalToken(text) {
			return Caller{}, errPlatformToken
		}
		return Caller{}, ErrInvalidKey
	}
	if !ok {
		r.value, r.err = p.gateway.keys.load(ctx, id)
	}

	if fault.Is(r.err, fault.NotFound) {
		return Caller{}, ErrInvalidKey
	}
	if r.err != nil {
		return Caller{}, r.err
	}

	request.Key, request.Role = r.value.UUID, "anon"
	if r.value.Kind == appkey.Secret {
		request.Role = "service_role"
	}

	return Caller{Role: request.Role}, nil
}

// VerifyS3Key fails with [ErrInvalidKey] unless the project has an S3 key.
func (p *Project) VerifyS3Key(ctx context.Context, key uuid.UUID) error {
	_, err := p.gateway.s3Keys.find(ctx, httpx.From(ctx).Start, s3KeyID{p.UUID, key})
	if fault.Is(err, fault.NotFound) {
		return ErrInvalidKey
	}

	return err
}

// S3Secret returns an S3 key's secret, whether the project has it or not.
func (p *Project) S3Secret(key uuid.UUID) string { return p.gateway.Projects.S3Secret(p.UUID, key) }
