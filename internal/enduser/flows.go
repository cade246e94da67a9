package enduser

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// authCodeTTL is the lifetime of an authorization code.
const authCodeTTL = 5 * time.Minute

// Challenge is a PKCE flow's code challenge. The zero Challenge is no flow.
type Challenge struct {
	Code   string
	Method string // s256 or plain
}

// check fails with Invalid for a malformed challenge.
func (c Challenge) check() error {
	switch {
	case c.Code == "" && c.Method == "":
		return nil
	case c.Code == "" || c.Method == "":
		return errInvalid("PKCE flow requires code_challenge_method and code_challenge")
	case !strings.EqualFold(c.Method, "s256") && !strings.EqualFold(c.Method, "plain"):
		return errInvalid("code challenge method must be s256 or plain")
	case len(c.Code) < 43 || len(c.Code) > 128 || strings.ContainsFunc(c.Code, notInChallenge):
		return errInvalid("code challenge has to be between 43 and 128 characters of letters, digits and -._~")
	}

	return nil
}

func notInChallenge(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~", r))
}

// createFlow inserts a flow. It returns none for no challenge.
func createFlow(ctx context.Context, q pg.Querier, c Challenge, method string) (uuid.NullUUID, error) {
	if c.Code == "" {
		return uuid.NullUUID{}, nil
	}

	id := newID()
	_, err := pg.Exec(ctx, q, `
		insert into auth.flow_state (id, code_challenge_method, code_challenge, provider_type, authentication_method)
		values (@id, @method, @challenge, 'email', @authentication)`,
		pgx.StrictNamedArgs{"id": id, "method": strings.ToLower(c.Method), "challenge": c.Code,
			"authentication": method})
	return uuid.NullUUID{UUID: id, Valid: true}, err
}

// issueCode returns the authorization code for a flow whose user has been authenticated.
func (d *Directory) issueCode(ctx context.Context, tx pgx.Tx, flow, user uuid.UUID) (string, error) {
	n, err := pg.Exec(ctx, tx, `
		update auth.flow_state set user_id = @user, auth_code_issued_at = now(), updated_at = now()
		where id = @id and auth_code_issued_at is null`, pgx.StrictNamedArgs{"id": flow, "user": user})
	if err == nil && n == 0 {
		err = errCode()
	}

	return d.keys.authCode(flow), err
}

// createProviderCode returns the authorization code for a user who has signed in with a provider.
// The provider's tokens wait sealed for its exchange.
func (d *Directory) createProviderCode(
	ctx context.Context, tx pgx.Tx, provider string, challenge Challenge, user uuid.UUID, who idp.Identity,
) (string, error) {
	var ciphertexts [2][]byte
	for i, text := range []string{who.AccessToken, who.RefreshToken} {
		if text == "" {
			continue
		}

		var err error
		if ciphertexts[i], err = token.Seal(d.keys.providerKey, []byte(text)); err != nil {
			return "", err
		}
	}

	id := newID()
	_, err := pg.Exec(ctx, tx, `
		insert into auth.flow_state (id, user_id, code_challenge_method, code_challenge, provider_type, authentication_method,
			auth_code_issued_at, provider_access_token, provider_refresh_token)
		values (@id, @user, @method, @challenge, @provider, 'oauth', now(), @access, @refresh)`,
		pgx.StrictNamedArgs{"id": id, "user": user, "method": strings.ToLower(challenge.Method),
			"challenge": challenge.Code, "provider": provider, "access": ciphertexts[0], "refresh": ciphertexts[1]})

	return d.keys.authCode(id), err
}

// flowState is an auth.flow_state row.
type flowState struct {
	ID                   uuid.UUID
	UserID               uuid.UUID
	CodeChallengeMethod  string
	CodeChallenge        string
	AuthenticationMethod string
	AuthCodeIssuedAt     time.Time
	ProviderAccessToken  []byte // sealed, nil if a provider has no part
	ProviderRefreshToken []byte
}

// ExchangeCode opens a session for an authorization code and its flow's verifier.
func (d *Directory) ExchangeCode(ctx context.Context, code, verifier string, c Client) (Session, error) {
	if code == "" || verifier == "" {
		return Session{}, errInvalid("invalid request: both auth code and code verifier should be non-empty")
	}

	id, ok := token.ParseLink(d.keys.linkKey, flowPurpose, code)
	if !ok {
		return Session{}, errFlow("invalid flow state, no valid flow state found", "flow_state_not_found")
	}

	var o unsignedSession
	var refusal error
	err := d.Tx(ctx, "granting user", func(ctx context.Context, tx pgx.Tx) error {
		// A code is spent by its first use, also by one with a wrong verifier.
		flow, err := pg.One[flowState](ctx, tx, `
			delete from auth.flow_state f where f.id = @id and f.auth_code_issued_at is not null and f.user_id is not null
			returning f.id, f.user_id, f.code_challenge_method, f.code_challenge, f.authentication_method, f.auth_code_issued_at,
				f.provider_access_token, f.provider_refresh_token`,
			pgx.StrictNamedArgs{"id": id})
		if fault.Is(err, fault.NotFound) {
			return errFlow("invalid flow state, no valid flow state found", "flow_state_not_found")
		}
		if err != nil {
			return err
		}

		switch {
		case time.Since(flow.AuthCodeIssuedAt) > authCodeTTL:
			refusal = errFlow("invalid flow state, flow state has expired", "flow_state_expired")
		case !flow.matches(verifier):
			refusal = fault.New(fault.Invalid, "code challenge does not match previously saved code verifier").
				WithCode("bad_code_verifier")
		}
		if refusal != nil {
			return nil
		}

		if err := d.checkSignIn(ctx, tx, flow.UserID); err != nil {
			return err
		}

		if o, err = d.openSession(ctx, tx, flow.UserID, flow.AuthenticationMethod, c); err != nil {
			return err
		}

		o.providerTokens, err = d.openProviderTokens(flow)
		return err
	})
	if err == nil && refusal != nil {
		err = refusal
	}
	if err != nil {
		return Session{}, err
	}

	return d.signNew(ctx, o)
}

// openProviderTokens returns the tokens that [Directory.createProviderCode] sealed.
func (d *Directory) openProviderTokens(f flowState) (tokens ProviderTokens, err error) {
	for _, t := range []struct {
		sealed []byte
		to     *string
	}{{f.ProviderAccessToken, &tokens.ProviderToken}, {f.ProviderRefreshToken, &tokens.ProviderRefreshToken}} {
		if len(t.sealed) == 0 {
			continue
		}

		text, err := token.Open(d.keys.providerKey, t.sealed)
		if err != nil {
			return tokens, fmt.Errorf("open a token of a provider: %w", err)
		}

		*t.to = string(text)
	}

	return tokens, nil
}

func (f flowState) matches(verifier string) bool {
	got := verifier
	if f.CodeChallengeMethod == "s256" {
		sum := sha256.Sum256([]byte(verifier))
		got = base64.RawURLEncoding.EncodeToString(sum[:])
	}

	return subtle.ConstantTimeCompare([]byte(got), []byte(f.CodeChallenge)) == 1
}
