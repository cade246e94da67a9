package oauth

import (
	"context"
	"encoding/json"
	"net/url"
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

// Request bounds.
const (
	maxState    = 4096 // bytes
	maxNonce    = 512  // bytes
	maxResource = 2048 // bytes
)

// authorization is a row of auth.oauth_authorizations with its client's name.
type authorization struct {
	ID            uuid.UUID
	ClientID      uuid.UUID
	UserID        uuid.NullUUID
	RedirectURI   string `db:"redirect_uri"`
	Scope         string
	State         string
	Nonce         string
	Resource      string
	CodeChallenge string
	Ask           bool
	Status        string
	AAL           string `db:"aal"`
	Methods       json.RawMessage
	SessionID     uuid.NullUUID
	CreatedAt     time.Time
	ApprovedAt    *time.Time

	ClientType string
	ClientName string
	ClientURI  string `db:"client_uri"`
	LogoURI    string `db:"logo_uri"`
}

const authorizationColumns = ` a.id, a.client_id, a.user_id, a.redirect_uri, a.scope, a.state, a.nonce, a.resource, a.code_challenge, a.ask,
	a.status, a.aal, a.methods, a.session_id, a.created_at, a.approved_at, c.client_type, c.client_name, c.client_uri, c.logo_uri `

// Authorize accepts a client's request that a browser brings, and returns the address to which the
// browser goes: the consent page, or the client with a failure. It fails with Invalid if the client
// or its address is unknown, so that nobody is sent to a stranger.
func (s *Server) Authorize(ctx context.Context, q url.Values, c enduser.Client) (string, error) {
	for name, values := range q {
		if len(values) > 1 {
			return "", errInvalid("%s must not be repeated", name)
		}
	}

	id, err := uuid.Parse(q.Get("client_id"))
	if err != nil {
		return "", fault.New(fault.Invalid, "client_id must be that of an OAuth client").
			WithCode("oauth_client_not_found")
	}

	client, err := s.GetClient(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return "", fault.New(fault.Invalid, "invalid client_id").WithCode("oauth_client_not_found")
	case err != nil:
		return "", err
	case !slices.Contains(client.RedirectURIs, q.Get("redirect_uri")):
		return "", errInvalid("redirect_uri must be one of the client's redirect_uris, character by character")
	}

	a := authorization{ID: uuid.New(), ClientID: id, RedirectURI: q.Get("redirect_uri"), State: q.Get("state")}
	if err := a.readParameters(q); err != nil {
		e := fault.Of(err)
		return s.failureURL(a, e.Code, e.Detail), nil
	}

	err = s.CountRequest(ctx, authorizeLimit, c)
	if fault.Is(err, fault.TooMany) {
		return s.failureURL(a, "temporarily_unavailable", "Request rate limit reached"), nil
	}
	if err != nil {
		return "", err
	}

	return s.consentURL(a.ID.String()), s.insert(ctx, a)
}

// readParameters checks and sets a request's parameters but client and address. Its failures have
// RFC 6749 codes.
func (a *authorization) readParameters(q url.Values) error {
	if len(a.State) > maxState {
		a.State = ""
		return errOAuth("invalid_request", "state must have at most %d bytes", maxState)
	}

	a.Scope, a.Nonce, a.Resource = q.Get("scope"), q.Get("nonce"), q.Get("resource")
	a.CodeChallenge = q.Get("code_challenge")
	if strings.TrimSpace(a.Scope) == "" {
		a.Scope = defaultScope
	}

	var scopes []string
	for _, scope := range strings.Fields(a.Scope) {
		if !slices.Contains(Scopes, scope) {
			return errOAuth("invalid_scope", "unsupported scope: %.100q", scope)
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	a.Scope = strings.Join(scopes, " ")

	prompts := strings.Fields(q.Get("prompt"))
	a.Ask = len(prompts) > 0

	switch mode := q.Get("response_mode"); {
	case q.Get("response_type") == "":
		return errOAuth("invalid_request", "response_type must be code")
	case q.Get("response_type") != "code":
		return errOAuth("unsupported_response_type", "response_type must be code")
	case mode != "" && mode != "query":
		return errOAuth("invalid_request", "response_mode must be query")
	case q.Has("request"):
		return errOAuth("request_not_supported", "request objects are not supported")
	case q.Has("request_uri"):
		return errOAuth("request_uri_not_supported", "request objects are not supported")
	case slices.Contains(prompts, "none"):
		return errOAuth("login_required", "the user must be asked")
	case q.Get("code_challenge_method") != "S256" || a.CodeChallenge == "":
		return errOAuth("invalid_request", "PKCE is required: code_challenge, and code_challenge_method S256")
	case !isChallenge(a.CodeChallenge):
		return errOAuth("invalid_request", "code_challenge must be a SHA-256 in base64url, 43 characters")
	case len(a.Nonce) > maxNonce:
		return errOAuth("invalid_request", "nonce must have at most %d bytes", maxNonce)
	case a.Resource != "" && !isResource(a.Resource):
		return errOAuth("invalid_target", "resource must be an absolute URL without query and fragment")
	}

	return nil
}

// isChallenge reports whether a text is formed like a code challenge by the method S256.
func isChallenge(text string) bool {
	return len(text) == 43 && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

func isResource(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.IsAbs() && len(text) <= maxResource && !strings.ContainsAny(text, "?#")
}

// insert stores a pending authorization. Beyond the bound, the oldest pending ones make room.
func (s *Server) insert(ctx context.Context, a authorization) error {
	_, err := pg.Exec(ctx, s.Rows(), `
		with old as (
			delete from auth.oauth_authorizations where id in (
				select id from auth.oauth_authorizations where status = 'pending' order by created_at desc offset @most)
		)
		insert into auth.oauth_authorizations (id, client_id, redirect_uri, scope, state, nonce, resource,
			code_challenge, ask)
		values (@id, @client, @redirect, @scope, @state, @nonce, @resource, @challenge, @ask)`,
		pgx.StrictNamedArgs{"id": a.ID, "client": a.ClientID, "redirect": a.RedirectURI, "scope": a.Scope,
			"state": a.State, "nonce": a.Nonce, "resource": a.Resource, "challenge": a.CodeChallenge, "ask": a.Ask,
			"most": maxPending - 1})
	return err
}

// answerURL returns the client's address with parameters, the state and the issuer.
func (s *Server) answerURL(a authorization, answer url.Values) string {
	if a.State != "" {
		answer.Set("state", a.State)
	}
	answer.Set("iss", s.Issuer())

	separator := "?"
	if strings.Contains(a.RedirectURI, "?") {
		separator = "&"
	}

	return a.RedirectURI + separator + answer.Encode()
}

func (s *Server) failureURL(a authorization, code, text string) string {
	return s.answerURL(a, url.Values{"error": {code}, "error_description": {text}})
}

const codePurpose = "authorization code of an OAuth client"

// codes returns the key for codes.
func (s *Server) codes() []byte { return s.SecretKey("authorization codes of OAuth clients") }

func (s *Server) codeURL(a authorization) string {
	return s.answerURL(a, url.Values{"code": {token.Link(s.codes(), codePurpose, a.ID)}})
}

// ClientView is a client as users see it.
type ClientView struct {
	ID      uuid.UUID `json:"id"`
	Name    string    `json:"name,omitempty"`
	URI     string    `json:"uri,omitempty"`
	LogoURI string    `json:"logo_uri,omitempty"`
}

func (a authorization) view() ClientView {
	return ClientView{ID: a.ClientID, Name: a.ClientName, URI: a.ClientURI, LogoURI: a.LogoURI}
}

// Pending is an authorization that waits for a user's decision.
type Pending struct {
	ID          uuid.UUID  `json:"authorization_id"`
	RedirectURI string     `json:"redirect_uri"`
	Client      ClientView `json:"client"`
	User        Person     `json:"user"`
	Scope       string     `json:"scope"`
}

// Person is the user who decides.
type Person struct {
	ID    uuid.UUID `json:"id"`
	Email string    `json:"email,omitempty"`
}

// View returns a pending authorization for the consent page of this server. It changes nothing.
func (s *Server) View(ctx context.Context, id uuid.UUID) (Pending, error) {
	a, err := s.pending(ctx, s.Rows(), id, false)
	return Pending{ID: a.ID, RedirectURI: a.RedirectURI, Client: a.view(), Scope: a.Scope}, err
}

// Open returns a pending authorization for the signed-in user, who is then the only one to decide.
// If the user has granted the client these scopes before, it approves at once, and returns the
// client's address.
func (s *Server) Open(
	ctx context.Context, who enduser.Identity, id uuid.UUID, c enduser.Client,
) (pending Pending, redirect string, err error) {
	err = s.Tx(ctx, "opening OAuth authorization", func(ctx context.Context, tx pgx.Tx) error {
		g, err := s.Grantor(ctx, tx, who)
		if err != nil {
			return err
		}

		a, err := s.claim(ctx, tx, id, g.User.ID)
		if err != nil {
			return err
		}

		isGranted, err := s.isGranted(ctx, tx, a, g.User.ID)
		if err != nil {
			return err
		}
		if isGranted {
			redirect = s.codeURL(a)
			return s.approve(ctx, tx, a, g, c)
		}

		pending = Pending{ID: a.ID, RedirectURI: a.RedirectURI, Client: a.view(), Scope: a.Scope,
			User: Person{ID: g.User.ID, Email: g.User.Email}}
		return nil
	})

	return pending, redirect, err
}

// isGranted reports whether a user needs no question. A public client with an app scheme or a
// loopback address may be any program on the device, so it is asked about every time.
func (s *Server) isGranted(ctx context.Context, tx pgx.Tx, a authorization, user uuid.UUID) (bool, error) {
	if a.Ask || (a.ClientType == public && !strings.HasPrefix(a.RedirectURI, "https://")) {
		return false, nil
	}

	return pg.Value[bool](ctx, tx, `
		select exists (select from auth.oauth_consents where user_id = @user and client_id = @client
			and scopes @> @scopes::text[])`,
		pgx.StrictNamedArgs{"user": user, "client": a.ClientID, "scopes": strings.Fields(a.Scope)})
}

// Decide approves or denies a pending authorization, and returns the client's address.
func (s *Server) Decide(
	ctx context.Context, who enduser.Identity, id uuid.UUID, approve bool, c enduser.Client,
) (redirect string, err error) {
	err = s.Tx(ctx, "deciding OAuth authorization", func(ctx context.Context, tx pgx.Tx) error {
		g, err := s.Grantor(ctx, tx, who)
		if err != nil {
			return err
		}

		a, err := s.claim(ctx, tx, id, g.User.ID)
		if err != nil {
			return err
		}

		if !approve {
			redirect = s.failureURL(a, "access_denied", "User denied the request")
			return deny(ctx, tx, a)
		}

		redirect = s.codeURL(a)
		if err := s.approve(ctx, tx, a, g, c); err != nil {
			return err
		}

		_, err = pg.Exec(ctx, tx, `
			insert into auth.oauth_consents as o (user_id, client_id, scopes) values (@user, @client, @scopes::text[])
			on conflict (user_id, client_id) do update set granted_at = now(),
				scopes = (select array_agg(distinct n) from unnest(o.scopes || excluded.scopes) n)`,
			pgx.StrictNamedArgs{"user": g.User.ID, "client": a.ClientID, "scopes": strings.Fields(a.Scope)})
		return err
	})

	return redirect, err
}

// Deny denies a pending authorization that no user has opened, and returns the client's address.
func (s *Server) Deny(ctx context.Context, id uuid.UUID) (redirect string, err error) {
	err = s.Tx(ctx, "deciding OAuth authorization", func(ctx context.Context, tx pgx.Tx) error {
		a, err := s.pending(ctx, tx, id, true)
		if err != nil {
			return err
		}
		if a.UserID.Valid {
			return errNotPending()
		}

		redirect = s.failureURL(a, "access_denied", "User denied the request")
		return deny(ctx, tx, a)
	})

	return redirect, err
}

func errNotPending() error {
	return fault.New(fault.NotFound, "authorization not found").WithCode("oauth_authorization_not_found")
}

// pending returns a pending authorization. It fails with NotFound for another one, and with Invalid
// for one that is decided.
func (s *Server) pending(ctx context.Context, q pg.Querier, id uuid.UUID, lock bool) (authorization, error) {
	sql := `select` + authorizationColumns + `from auth.oauth_authorizations a join auth.oauth_clients c on c.id = a.client_id
		where a.id = @id`
	if lock {
		sql += ` for update of a`
	}

	a, err := pg.One[authorization](ctx, q, sql, pgx.StrictNamedArgs{"id": id})
	switch {
	case fault.Is(err, fault.NotFound):
		return a, errNotPending()
	case err != nil:
		return a, err
	case a.Status != "pending":
		return a, errInvalid("authorization request is no longer pending")
	case time.Since(a.CreatedAt) > requestTTL:
		return a, errNotPending()
	}

	return a, nil
}

// claim returns a pending authorization, locked, and assigns it to a user. It fails with NotFound
// if it belongs to another user.
func (s *Server) claim(ctx context.Context, tx pgx.Tx, id, user uuid.UUID) (authorization, error) {
	a, err := s.pending(ctx, tx, id, true)
	if err != nil {
		return a, err
	}
	if a.UserID.Valid && a.UserID.UUID != user {
		return a, errNotPending()
	}

	a.UserID = uuid.NullUUID{UUID: user, Valid: true}
	_, err = pg.Exec(ctx, tx, `update auth.oauth_authorizations set user_id = @user where id = @id`,
		pgx.StrictNamedArgs{"id": id, "user": user})
	return a, err
}

// approve makes an authorization's code valid.
func (s *Server) approve(
	ctx context.Context, tx pgx.Tx, a authorization, g enduser.Grantor, c enduser.Client,
) error {
	if _, err := pg.Exec(ctx, tx, `
		update auth.oauth_authorizations set status = 'approved', approved_at = now(), aal = @aal,
			methods = @methods::jsonb
		where id = @id`,
		pgx.StrictNamedArgs{"id": a.ID, "aal": g.AAL, "methods": string(g.Methods)}); err != nil {
		return err
	}

	return s.logUser(ctx, tx, "oauth_authorization_approved", g.User, a.ClientID, c)
}

func deny(ctx context.Context, tx pgx.Tx, a authorization) error {
	_, err := pg.Exec(ctx, tx, `update auth.oauth_authorizations set status = 'denied' where id = @id`,
		pgx.StrictNamedArgs{"id": a.ID})
	return err
}

// logUser records a user's action about a client.
func (s *Server) logUser(
	ctx context.Context, tx pgx.Tx, action string, u enduser.User, client uuid.UUID, c enduser.Client,
) error {
	return s.LogAction(ctx, tx, map[string]any{"action": action, "actor_id": u.ID, "actor_username": u.Email,
		"actor_via_sso": false, "log_type": "oauth", "client_id": client}, c)
}
