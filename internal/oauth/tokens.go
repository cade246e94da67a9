package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// Token endpoint grants.
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
)

// TokenRequest is a request to the token endpoint.
type TokenRequest struct {
	GrantType    string
	Code         string
	RedirectURI  string
	CodeVerifier string
	RefreshToken string
	Resource     string
}

// Tokens are the response to it.
type Tokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope,omitempty"`
	IDToken      string `json:"id_token,omitempty"`
}

// Token returns tokens for a code or a refresh token. Its failures have RFC 6749 codes.
func (s *Server) Token(ctx context.Context, client Client, in TokenRequest, c enduser.Client) (Tokens, error) {
	switch {
	case in.GrantType == "":
		return Tokens{}, errOAuth("invalid_request", "grant_type is required")
	case !slices.Contains(grantTypes, in.GrantType):
		return Tokens{}, errOAuth("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
	case !slices.Contains(client.GrantTypes, in.GrantType):
		return Tokens{}, errOAuth("unauthorized_client", "The client is not registered for this grant_type")
	case in.GrantType == grantCode:
		return s.exchange(ctx, client, in, c)
	}

	return s.refresh(ctx, client, in, c)
}

func errGrant(format string, args ...any) *fault.Error {
	return errOAuth("invalid_grant", format, args...)
}

// exchange opens a session for a code. Any other use spends the code, and a code's second use ends
// the session that the first has opened.
func (s *Server) exchange(ctx context.Context, client Client, in TokenRequest, c enduser.Client) (Tokens, error) {
	if in.Code == "" || in.CodeVerifier == "" {
		return Tokens{}, errOAuth("invalid_request", "code and code_verifier are required")
	}

	id, ok := token.ParseLink(s.codes(), codePurpose, in.Code)
	if !ok {
		return Tokens{}, errGrant("Invalid authorization code")
	}

	var a authorization
	var session enduser.ClientSession
	var refusal error
	err := s.Tx(ctx, "granting user", func(ctx context.Context, tx pgx.Tx) error {
		var err error
		a, err = pg.One[authorization](ctx, tx, `
			select`+authorizationColumns+`from auth.oauth_authorizations a join auth.oauth_clients c on c.id = a.client_id
			where a.id = @id for update of a`, pgx.StrictNamedArgs{"id": id})
		if fault.Is(err, fault.NotFound) {
			return errGrant("Invalid authorization code")
		}
		if err != nil {
			return err
		}

		if refusal = a.refuse(client, in); refusal != nil {
			return s.spend(ctx, tx, a)
		}

		session, err = s.OpenClientSession(ctx, tx, enduser.ClientGrant{User: a.UserID.UUID, Client: client.ID,
			Scope: a.Scope, AAL: a.AAL, Methods: a.Methods}, c)
		if err != nil {
			return err
		}

		_, err = pg.Exec(ctx, tx,
			`update auth.oauth_authorizations set status = 'spent', session_id = @session where id = @id`,
			pgx.StrictNamedArgs{"id": a.ID, "session": session.SessionID()})
		return err
	})

	switch {
	case err == nil && refusal != nil:
		return Tokens{}, refusal
	case err != nil && slices.Contains([]string{"user_banned", "user_not_found"}, fault.Of(err).Code):
		return Tokens{}, errGrant("The user may not sign in").WithCause(err)
	case err != nil:
		return Tokens{}, err
	}

	tokens, err := s.SignClientSession(ctx, session)
	if err != nil {
		return Tokens{}, err
	}

	t := tokensOf(client, tokens, a.Scope)
	if slices.Contains(strings.Fields(a.Scope), "openid") {
		t.IDToken, err = s.idToken(a, tokens)
	}

	return t, err
}

// refuse returns the reason why a code opens no session, nil if it does.
func (a authorization) refuse(client Client, in TokenRequest) error {
	switch {
	case a.Status == "spent":
		return errGrant("The authorization code has been used before")
	case a.Status != "approved" || a.ApprovedAt == nil || !a.UserID.Valid:
		return errGrant("Invalid authorization code")
	case a.ClientID != client.ID:
		return errGrant("The authorization code is not one of this client")
	case time.Since(*a.ApprovedAt) > codeTTL:
		return errGrant("The authorization code has expired")
	case in.RedirectURI != "" && in.RedirectURI != a.RedirectURI:
		return errGrant("redirect_uri is not that of the authorization")
	case in.Resource != "" && in.Resource != a.Resource:
		return errOAuth("invalid_target", "resource is not that of the authorization")
	case !a.matches(in.CodeVerifier):
		return errGrant("code_verifier does not fit the code_challenge")
	}

	return nil
}

func (a authorization) matches(verifier string) bool {
	sum := sha256.Sum256([]byte(verifier))
	got := base64.RawURLEncoding.EncodeToString(sum[:])

	return len(verifier) >= 43 && len(verifier) <= 128 &&
		subtle.ConstantTimeCompare([]byte(got), []byte(a.CodeChallenge)) == 1
}

// spend makes a code useless, and ends the session that it has opened.
func (s *Server) spend(ctx context.Context, tx pgx.Tx, a authorization) error {
	if _, err := pg.Exec(ctx, tx,
		`update auth.oauth_authorizations set status = 'spent' where id = @id and status = 'approved'`,
		pgx.StrictNamedArgs{"id": a.ID}); err != nil || !a.SessionID.Valid {
		return err
	}

	_, err := pg.Exec(ctx, tx, `delete from auth.sessions where id = @id`, pgx.StrictNamedArgs{"id": a.SessionID.UUID})
	return err
}

// refresh returns new tokens for a refresh token.
func (s *Server) refresh(ctx context.Context, client Client, in TokenRequest, c enduser.Client) (Tokens, error) {
	if in.RefreshToken == "" {
		return Tokens{}, errOAuth("invalid_request", "refresh_token is required")
	}

	session, scope, err := s.RefreshClientSession(ctx, in.RefreshToken, client.ID, c)
	if fault.Is(err, fault.Invalid) {
		return Tokens{}, errGrant("%s", fault.Of(err).Detail).WithCause(err)
	}
	if err != nil {
		return Tokens{}, err
	}

	return tokensOf(client, session, scope), nil
}

func tokensOf(client Client, session enduser.Session, scope string) Tokens {
	t := Tokens{AccessToken: session.AccessToken, TokenType: "bearer", ExpiresIn: session.ExpiresIn,
		RefreshToken: session.RefreshToken, Scope: scope}
	if !slices.Contains(client.GrantTypes, grantRefresh) {
		t.RefreshToken = ""
	}

	return t
}

// idToken returns a session's ID token.
func (s *Server) idToken(a authorization, session enduser.Session) (string, error) {
	var methods []struct{ Timestamp int64 }
	if err := json.Unmarshal(a.Methods, &methods); err != nil {
		return "", err
	}

	var authTime int64
	for _, m := range methods {
		authTime = max(authTime, m.Timestamp)
	}

	now := time.Now()
	sum := sha256.Sum256([]byte(session.AccessToken))
	claims := profile(session.User, a.Scope)
	claims["iss"], claims["aud"], claims["sub"] = s.Issuer(), a.ClientID, session.User.ID
	claims["iat"], claims["exp"] = now.Unix(), now.Add(time.Hour).Unix()
	claims["auth_time"] = authTime
	claims["at_hash"] = base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
	if a.Nonce != "" {
		claims["nonce"] = a.Nonce
	}

	return s.SignIDToken(claims)
}

// UserInfo returns the claims about an access token's user.
func (s *Server) UserInfo(ctx context.Context, who enduser.Identity) (map[string]any, error) {
	u, err := s.ScopedUser(ctx, who)
	if err != nil {
		return nil, err
	}

	claims := profile(u.User, u.Scope)
	claims["sub"] = u.User.ID

	return claims, nil
}

// profile returns the claims about a user that a scope covers.
func profile(u enduser.User, scope string) map[string]any {
	claims := map[string]any{}
	scopes := strings.Fields(scope)

	if slices.Contains(scopes, "email") && u.Email != "" {
		claims["email"], claims["email_verified"] = u.Email, u.EmailConfirmedAt != nil
	}
	if slices.Contains(scopes, "phone") && u.Phone != "" {
		claims["phone_number"], claims["phone_number_verified"] = "+"+u.Phone, u.PhoneConfirmedAt != nil
	}
	if slices.Contains(scopes, "profile") {
		var data map[string]any
		_ = json.Unmarshal(u.UserMetadata, &data) // is an object

		for claim, members := range map[string][]string{"name": {"name", "full_name"}, "picture": {"picture",
			"avatar_url"},
			"preferred_username": {"preferred_username", "username", "user_name"}} {
			for _, member := range members {
				if text, ok := data[member].(string); ok && text != "" && claims[claim] == nil {
					claims[claim] = text
				}
			}
		}
		claims["updated_at"] = u.UpdatedAt.Unix()
	}

	return claims
}

// Grant is what a user has granted a client.
type Grant struct {
	Client    ClientView `json:"client"`
	Scopes    []string   `json:"scopes"`
	GrantedAt time.Time  `json:"granted_at"`
}

// grantRow is a row of auth.oauth_consents with its client.
type grantRow struct {
	ID        uuid.UUID
	Name      string
	URI       string `db:"uri"`
	LogoURI   string `db:"logo_uri"`
	Scopes    []string
	GrantedAt time.Time
}

// ListGrants returns a user's grants, the newest first.
func (s *Server) ListGrants(ctx context.Context, who enduser.Identity) ([]Grant, error) {
	grants := []Grant{}
	err := s.Tx(ctx, "listing grants", func(ctx context.Context, tx pgx.Tx) error {
		u, err := s.Owner(ctx, tx, who)
		if err != nil {
			return err
		}

		rows, err := pg.All[grantRow](ctx, tx, `
			select c.id, c.client_name as name, c.client_uri as uri, c.logo_uri, o.scopes, o.granted_at
			from auth.oauth_consents o join auth.oauth_clients c on c.id = o.client_id
			where o.user_id = @user order by o.granted_at desc, c.id`, pgx.StrictNamedArgs{"user": u.ID})
		for _, r := range rows {
			grants = append(grants, Grant{Client: ClientView{ID: r.ID, Name: r.Name, URI: r.URI, LogoURI: r.LogoURI},
				Scopes: r.Scopes, GrantedAt: r.GrantedAt})
		}

		return err
	})

	return grants, err
}

// RevokeGrant takes back a user's grant to a client: its sessions end, and codes that it has not
// used are void.
func (s *Server) RevokeGrant(ctx context.Context, who enduser.Identity, client uuid.UUID, c enduser.Client) error {
	return s.Tx(ctx, "revoking grant", func(ctx context.Context, tx pgx.Tx) error {
		u, err := s.Owner(ctx, tx, who)
		if err != nil {
			return err
		}

		args := pgx.StrictNamedArgs{"user": u.ID, "client": client}
		n, err := pg.Exec(ctx, tx, `delete from auth.oauth_consents where user_id = @user and client_id = @client`,
			args)
		if err == nil && n == 0 {
			err = fault.New(fault.NotFound, "No active grant found for this client").WithCode("oauth_consent_not_found")
		}
		if err != nil {
			return err
		}

		if _, err := pg.Exec(ctx, tx,
			`delete from auth.oauth_authorizations where user_id = @user and client_id = @client`,
			args); err != nil {
			return err
		}
		if _, err := pg.Exec(ctx, tx, `delete from auth.sessions where user_id = @user and oauth_client_id = @client`,
			args); err != nil {
			return err
		}

		return s.logUser(ctx, tx, "oauth_grant_revoked", u, client, c)
	})
}
