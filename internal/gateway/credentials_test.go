package gateway

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/token"
)

// key creates a key of a project and returns its text.
func (d *door) key(project uuid.UUID, kind string) string {
	d.t.Helper()

	_, text, err := appkey.CreateProjectKey(d.t.Context(), d.DB, project, d.User, uuid.NewString(), kind)
	if err != nil {
		d.t.Fatal(err)
	}

	return text
}

// signed returns a token that is signed with a secret.
func signed(t *testing.T, secret, claims string) string {
	t.Helper()

	text, err := jws.Sign([]byte(claims), jws.WithKey(jwa.HS256(), []byte(secret)))
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// TestVerify checks whom keys and tokens identify, and the codes of those that are refused.
func TestVerify(t *testing.T) {
	t.Parallel()

	d := newDoor(t)
	project, other := d.Project(), d.Project()
	p, err := d.Refresh(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}

	secret := d.Projects.JWTSecret(project)
	for name, test := range map[string]struct{ text, role, code string }{
		"publishable key": {d.key(project, appkey.Publishable), "anon", ""},
		"secret key":      {d.key(project, appkey.Secret), "service_role", ""},
		"token":           {signed(t, secret, `{"role":"authenticated","sub":"ann"}`), "authenticated", ""},
		"no key":          {"", "", InvalidKey},
		"unknown key":     {token.NewAPIKey(token.SecretPrefix), "", InvalidKey},
		"malformed key":   {token.SecretPrefix + "x", "", InvalidKey},
		"other's key":     {d.key(other, appkey.Secret), "", InvalidKey},
		"personal token":  {token.NewAPIKey(token.PersonalPrefix), "", PlatformToken},
		"malformed token": {"a.b", "", jwt.InvalidToken},
		"other's token":   {signed(t, d.Projects.JWTSecret(other), `{"role":"anon"}`), "", jwt.InvalidToken},
		"expired token":   {signed(t, secret, `{"role":"anon","exp":1}`), "", jwt.InvalidClaims},
		"member's token":  {signed(t, strings.Repeat("x", 32), `{"aud":"socle-platform"}`), "", PlatformToken},
	} {
		got, err := p.Verify(t.Context(), test.text)
		code := ""
		if err != nil {
			code = fault.Of(err).Code
		}
		if got.Role != test.role || code != test.code || (code != "" && !fault.Is(err, fault.Unauthenticated)) {
			t.Errorf("%s: got role %q, error %v; want %q, code %q", name, got.Role, err, test.role, test.code)
		}
	}

	if got, err := p.Verify(t.Context(), signed(t, secret, `{"sub":"ann","session_id":"s"}`)); err != nil ||
		got.Subject != "ann" || got.Session != "s" || len(got.Claims) == 0 {
		t.Errorf("claims: got %+v, %v", got, err)
	}
}

func TestVerifyS3Key(t *testing.T) {
	t.Parallel()

	d := newDoor(t)
	project := d.Project()
	p, err := d.Refresh(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	key, err := appkey.CreateS3Key(t.Context(), d.DB, project, d.User, "rclone")
	if err != nil {
		t.Fatal(err)
	}

	if err := p.VerifyS3Key(t.Context(), key.UUID); err != nil {
		t.Error(err)
	}
	if err := p.VerifyS3Key(t.Context(), uuid.New()); err != ErrInvalidKey {
		t.Errorf("unknown key: got %v, want %v", err, ErrInvalidKey)
	}
	if p.S3Secret(key.UUID) == p.S3Secret(uuid.New()) {
		t.Error("two keys have one secret")
	}
}
