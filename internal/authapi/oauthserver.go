package authapi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/oauth"
)

// openIDConfiguration serves the metadata by which programs find the keys for the project's tokens.
func (c *call) openIDConfiguration([]uuid.UUID) error {
	c.w.Header().Set("Cache-Control", "public, max-age=600")
	return c.respond(http.StatusOK, oauth.Metadata(c.Directory))
}

func (c *call) serverMetadata(ids []uuid.UUID) error {
	if _, err := oauth.Of(c.Directory); err != nil {
		return err
	}
	return c.openIDConfiguration(ids)
}

// oauthAuthorize sends a browser from a client to the consent page.
func (c *call) oauthAuthorize([]uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	to, err := s.Authorize(c.r.Context(), c.r.URL.Query(), c.client)
	if err != nil {
		return err
	}

	c.sendTo(to)
	return nil
}

// redirected is the response to a decision.
type redirected struct {
	RedirectURL string `json:"redirect_url"`
}

func (c *call) openAuthorization(ids []uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	shown, to, err := s.Open(c.r.Context(), c.identity(), ids[0], c.client)
	switch {
	case err != nil:
		return err
	case to != "":
		return c.respond(http.StatusOK, redirected{to})
	}

	return c.respond(http.StatusOK, shown)
}

func (c *call) decideAuthorization(ids []uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	var in struct{ Action string }
	if err := c.decode(&in); err != nil {
		return err
	}
	if in.Action != "approve" && in.Action != "deny" {
		return fault.New(fault.Invalid, "action must be 'approve' or 'deny'").WithCode("validation_failed")
	}

	to, err := s.Decide(c.r.Context(), c.identity(), ids[0], in.Action == "approve", c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, redirected{to})
}

// oauthToken serves the token endpoint. Its failures have RFC 6749's form.
func (c *call) oauthToken([]uuid.UUID) error {
	c.w.Header().Set("Pragma", "no-cache")

	tokens, err := c.grantTokens()
	if err == nil {
		return c.respond(http.StatusOK, tokens)
	}

	e := fault.Of(err)
	if e.Kind != fault.Invalid && e.Kind != fault.Unauthenticated {
		return err
	}

	status := http.StatusBadRequest
	if e.Kind == fault.Unauthenticated {
		status = http.StatusUnauthorized
		c.w.Header().Set("WWW-Authenticate", `Basic realm="OAuth clients"`)
	}

	code := e.CodeWord()
	if code == "bad_json" || code == "validation_failed" {
		code = "invalid_request"
	}

	return c.respond(status, map[string]string{"error": code, "error_description": e.Detail})
}

func (c *call) grantTokens() (oauth.Tokens, error) {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return oauth.Tokens{}, err
	}

	in, err := c.tokenParameters()
	if err != nil {
		return oauth.Tokens{}, err
	}

	credentials, err := c.clientCredentials(in)
	if err != nil {
		return oauth.Tokens{}, err
	}

	client, err := s.AuthenticateClient(c.r.Context(), credentials)
	if err != nil {
		return oauth.Tokens{}, err
	}

	return s.Token(c.r.Context(), client, oauth.TokenRequest{GrantType: in.Get("grant_type"), Code: in.Get("code"),
		RedirectURI: in.Get("redirect_uri"), CodeVerifier: in.Get("code_verifier"),
		RefreshToken: in.Get("refresh_token"), Resource: in.Get("resource")}, c.client)
}

func errTokenRequest(text string) error {
	return fault.New(fault.Invalid, "%s", text).WithCode("invalid_request")
}

// tokenParameters returns the parameters of a form, or of JSON as clients of Supabase send it.
func (c *call) tokenParameters() (url.Values, error) {
	media, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";")
	q := url.Values{}
	if strings.TrimSpace(media) == "application/json" {
		members := map[string]string{}
		if err := c.decode(&members); err != nil {
			return nil, err
		}
		for name, value := range members {
			q.Set(name, value)
		}

		return q, nil
	}

	err := c.readBody(func(body []byte) (err error) {
		if q, err = url.ParseQuery(string(body)); err != nil {
			return errTokenRequest("Could not parse the form")
		}

		return checkQuery(q)
	})
	if err != nil {
		return nil, err
	}

	for _, values := range q {
		if len(values) > 1 {
			return nil, errTokenRequest("Parameters must not be repeated")
		}
	}

	return q, nil
}

// clientCredentials returns the client's credentials, which it sends in one way only.
func (c *call) clientCredentials(in url.Values) (oauth.Credentials, error) {
	scheme, encoded, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "basic") {
		method := "none"
		if in.Has("client_secret") {
			method = "client_secret_post"
		}

		return oauth.Credentials{ID: in.Get("client_id"), Secret: in.Get("client_secret"), Method: method}, nil
	}

	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	id, secret, ok := strings.Cut(string(text), ":")
	if err != nil || !ok {
		return oauth.Credentials{}, errTokenRequest("The Authorization header is malformed")
	}

	// Both are encoded like a form, by RFC 6749.
	id, idErr := url.QueryUnescape(id)
	secret, secretErr := url.QueryUnescape(secret)
	if idErr != nil || secretErr != nil {
		return oauth.Credentials{}, errTokenRequest("The Authorization header is malformed")
	}
	if in.Has("client_secret") || (in.Has("client_id") && in.Get("client_id") != id) {
		return oauth.Credentials{}, errTokenRequest("The client must authenticate in one way")
	}

	return oauth.Credentials{ID: id, Secret: secret, Method: "client_secret_basic"}, nil
}

func (c *call) userInfo([]uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	claims, err := s.UserInfo(c.r.Context(), c.identity())
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, claims)
}

func (c *call) listGrants([]uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	grants, err := s.ListGrants(c.r.Context(), c.identity())
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, grants)
}

func (c *call) revokeGrant([]uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	id, err := uuid.Parse(c.r.URL.Query().Get("client_id"))
	if err != nil {
		return fault.New(fault.Invalid, "client_id must be that of an OAuth client").WithCode("validation_failed")
	}
	if err := s.RevokeGrant(c.r.Context(), c.identity(), id, c.client); err != nil {
		return err
	}

	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) registerClient([]uuid.UUID) error {
	return c.changeClient(http.StatusCreated, func(s *oauth.Server, r oauth.Registration) (oauth.Client, error) {
		return s.Register(c.r.Context(), r, c.client)
	})
}

func (c *call) createClient([]uuid.UUID) error {
	return c.changeClient(http.StatusCreated, func(s *oauth.Server, r oauth.Registration) (oauth.Client, error) {
		return s.CreateClient(c.r.Context(), r, c.client)
	})
}

func (c *call) updateClient(ids []uuid.UUID) error {
	return c.changeClient(http.StatusOK, func(s *oauth.Server, r oauth.Registration) (oauth.Client, error) {
		return s.UpdateClient(c.r.Context(), ids[0], r, c.client)
	})
}

// changeClient calls a function with the client members in the body, and responds with the client.
func (c *call) changeClient(
	status int, change func(*oauth.Server, oauth.Registration) (oauth.Client, error),
) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	var in oauth.Registration
	if err := c.decode(&in); err != nil {
		return err
	}

	client, err := change(s, in)
	if err != nil {
		return err
	}

	return c.respond(status, client)
}

func (c *call) listClients([]uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	page, perPage, err := c.pageOf()
	if err != nil {
		return err
	}

	clients, total, err := s.ListClients(c.r.Context(), page, perPage)
	if err != nil {
		return err
	}

	c.setPage("/admin/oauth/clients", page, perPage, total)
	return c.respond(http.StatusOK, map[string]any{"clients": clients, "aud": "authenticated"})
}

func (c *call) getClient(ids []uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	client, err := s.GetClient(c.r.Context(), ids[0])
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, client)
}

func (c *call) deleteClient(ids []uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}
	if err := s.DeleteClient(c.r.Context(), ids[0], c.client); err != nil {
		return err
	}

	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) regenerateSecret(ids []uuid.UUID) error {
	s, err := oauth.Of(c.Directory)
	if err != nil {
		return err
	}

	client, err := s.RegenerateSecret(c.r.Context(), ids[0], c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, client)
}
