// Package authapi serves a project's end users over HTTP by the contract of Supabase Auth, so that
// its clients work unchanged: routes, bodies, errors and redirects.
//
// Rules and rows belong to package enduser. Package gateway finds the project of a request and
// verifies keys and tokens.
package authapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
)

// maxBody is a request's maximum size in bytes: two kinds of metadata and the rest.
const maxBody = 64 << 10

// Prefix is the interface's path behind the project's.
const Prefix = "/auth/v1"

// New returns the interface. bodies bounds the memory for all requests' bodies.
func New(users *enduser.Service, bodies *fair.Pool) gateway.Interface {
	open := func(p *gateway.Project, _ gateway.Cache) (gateway.Handler, error) {
		s := p.Settings.EndUsers
		c, err := users.ParseConfig(p.UUID, enduser.StoredConfig{Settings: s.Settings, Secrets: s.Secrets,
			Generation: s.KeyGeneration})
		if err != nil {
			return gateway.Handler{}, fmt.Errorf("read the settings of end users: %w", err)
		}

		directory, err := users.Directory(p.UUID, c)
		if err != nil {
			return gateway.Handler{}, err
		}

		return gateway.Handler{Serve: (&project{directory, p, bodies}).serve}, nil
	}

	return gateway.Interface{Prefix: Prefix, Open: open, Fail: fail}
}

// project is a project that requests are served for.
type project struct {
	*enduser.Directory
	door   *gateway.Project
	bodies *fair.Pool
}

// call is a request under way.
type call struct {
	*project
	w      http.ResponseWriter
	r      *http.Request
	client enduser.Client
	caller gateway.Caller
	bearer bool // the Authorization header has a token
}

// handler serves a request. ids are the UUIDs in its path.
type handler func(c *call, ids []uuid.UUID) error

// route is an entry of the route table. In its path, {id} stands for a UUID.
type route struct {
	access func(*call) error
	serve  handler
}

// routes maps methods and paths to handlers.
var routes = map[string]route{
	"GET /health":                {anyone, (*call).health},
	"GET /settings":              {anyone, (*call).settings},
	"GET /.well-known/jwks.json": {anyone, (*call).jwks},

	"GET /.well-known/openid-configuration":       {anyone, (*call).openIDConfiguration},
	"GET /.well-known/oauth-authorization-server": {anyone, (*call).serverMetadata},

	"GET /verify":                  {anyone, (*call).openLink},
	"GET /authorize":               {anyone, (*call).authorize},
	"GET /callback":                {anyone, (*call).callback},
	"POST /callback":               {anyone, (*call).callback},
	"POST /signup":                 {withKey, (*call).signUp},
	"POST /token":                  {withKey, (*call).token},
	"POST /recover":                {withKey, (*call).recover},
	"POST /otp":                    {withKey, (*call).otp},
	"POST /magiclink":              {withKey, (*call).otp},
	"POST /verify":                 {withKey, (*call).verify},
	"POST /resend":                 {withKey, (*call).resend},
	"GET /user":                    {withToken, (*call).getUser},
	"PUT /user":                    {withUser, (*call).updateUser},
	"POST /logout":                 {withUser, (*call).logout},
	"GET /reauthenticate":          {withUser, (*call).reauthenticate},
	"POST /factors":                {withUser, (*call).enroll},
	"POST /factors/{id}/challenge": {withUser, (*call).challenge},
	"POST /factors/{id}/verify":    {withUser, (*call).verifyFactor},
	"DELETE /factors/{id}":         {withUser, (*call).unenroll},

	"GET /user/identities/authorize": {withUser, (*call).linkIdentity},
	"DELETE /user/identities/{id}":   {withUser, (*call).unlinkIdentity},

	"POST /factors/recovery_codes":        {withUser, (*call).createRecoveryCodes},
	"GET /factors/recovery_codes":         {withUser, (*call).countRecoveryCodes},
	"POST /factors/recovery_codes/verify": {withUser, (*call).useRecoveryCode},

	"POST /passkeys/registration/options":   {withUser, (*call).startPasskeyRegistration},
	"POST /passkeys/registration/verify":    {withUser, (*call).finishPasskeyRegistration},
	"POST /passkeys/authentication/options": {withKey, (*call).startPasskeySignIn},
	"POST /passkeys/authentication/verify":  {withKey, (*call).finishPasskeySignIn},
	"GET /passkeys":                         {withUser, (*call).listPasskeys},
	"PATCH /passkeys/{id}":                  {withUser, (*call).renamePasskey},
	"DELETE /passkeys/{id}":                 {withUser, (*call).removePasskey},

	"GET /oauth/authorize":                    {anyone, (*call).oauthAuthorize},
	"GET /oauth/authorizations/{id}":          {withUser, (*call).openAuthorization},
	"POST /oauth/authorizations/{id}/consent": {withUser, (*call).decideAuthorization},
	"POST /oauth/token":                       {anyone, (*call).oauthToken},
	"GET /oauth/userinfo":                     {withUser, (*call).userInfo},
	"POST /oauth/userinfo":                    {withUser, (*call).userInfo},
	"POST /oauth/clients/register":            {anyone, (*call).registerClient},
	"GET /user/oauth/grants":                  {withUser, (*call).listGrants},
	"DELETE /user/oauth/grants":               {withUser, (*call).revokeGrant},

	"GET /admin/oauth/clients":                         {asAdmin, (*call).listClients},
	"POST /admin/oauth/clients":                        {asAdmin, (*call).createClient},
	"GET /admin/oauth/clients/{id}":                    {asAdmin, (*call).getClient},
	"PUT /admin/oauth/clients/{id}":                    {asAdmin, (*call).updateClient},
	"PATCH /admin/oauth/clients/{id}":                  {asAdmin, (*call).updateClient},
	"DELETE /admin/oauth/clients/{id}":                 {asAdmin, (*call).deleteClient},
	"POST /admin/oauth/clients/{id}/regenerate_secret": {asAdmin, (*call).regenerateSecret},

	"POST /invite":                           {asAdmin, (*call).invite},
	"POST /admin/generate_link":              {asAdmin, (*call).generateLink},
	"GET /admin/users":                       {asAdmin, (*call).listUsers},
	"POST /admin/users":                      {asAdmin, (*call).createUser},
	"GET /admin/users/{id}":                  {asAdmin, (*call).adminGetUser},
	"PUT /admin/users/{id}":                  {asAdmin, (*call).adminUpdateUser},
	"DELETE /admin/users/{id}":               {asAdmin, (*call).deleteUser},
	"GET /admin/users/{id}/factors":          {asAdmin, (*call).listFactors},
	"DELETE /admin/users/{id}/factors/{id}":  {asAdmin, (*call).deleteFactor},
	"GET /admin/users/{id}/passkeys":         {asAdmin, (*call).adminListPasskeys},
	"DELETE /admin/users/{id}/passkeys/{id}": {asAdmin, (*call).adminDeletePasskey},
}

// serve serves a request. path is the part behind [Prefix].
func (p *project) serve(w http.ResponseWriter, r *http.Request, path string) {
	if httpx.ApplicationCORS(w, r) {
		return
	}

	request := httpx.From(r.Context())
	c := &call{project: p, w: w, r: r,
		client: enduser.Client{Address: request.Client, Network: networkOf(request.Client), Agent: request.UserAgent}}

	if err := c.dispatch(path); err != nil {
		c.fail(err)
	}
}

// fail answers a request whose project does not exist or could not be opened.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if !httpx.ApplicationCORS(w, r) {
		(&call{w: w, r: r}).fail(err)
	}
}

func (c *call) dispatch(path string) error {
	pattern, ids := patternOf(path)

	route, ok := routes[c.r.Method+" "+pattern]
	if !ok {
		pattern, route, ok = c.malformedRoute(pattern)
	}
	if !ok {
		return c.unknownRoute(pattern)
	}

	httpx.From(c.r.Context()).Route = "/projects/{projectUUID}" + Prefix + pattern
	if part := httpx.HostileText(c.r); part != "" {
		return fault.New(fault.Invalid, "%s must be UTF-8 without null characters", part).WithCode("validation_failed")
	}

	if c.door.Inactive != nil {
		return c.door.Inactive
	}
	if err := route.access(c); err != nil {
		return err
	}

	return route.serve(c, ids)
}

// malformedRoute returns the route for a path with other text in a UUID's place. It checks the
// access like any other, and finds nothing.
func (c *call) malformedRoute(path string) (string, route, bool) {
	segments := strings.Split(path, "/")
	for known, r := range routes {
		method, pattern, _ := strings.Cut(known, " ")
		parts := strings.Split(pattern, "/")
		if method != c.r.Method || len(parts) != len(segments) {
			continue
		}

		matches := true
		for i, part := range parts {
			matches = matches && (part == "{id}" || part == segments[i])
		}
		if matches {
			return pattern, route{r.access, (*call).malformedID}, true
		}
	}

	return path, route{}, false
}

func (c *call) malformedID([]uuid.UUID) error {
	return fault.New(fault.NotFound, "ids in the path must be UUIDs").WithCode("validation_failed")
}

// unknownRoute returns the failure for a request without a route. Features that clients know and
// this server lacks are named.
func (c *call) unknownRoute(pattern string) error {
	switch pattern {
	case "/sso":
		return fault.New(fault.NotFound, "SAML 2.0 is disabled").WithCode("saml_provider_disabled")
	}

	for known := range routes {
		if _, path, _ := strings.Cut(known, " "); path == pattern {
			return errMethod
		}
	}

	return fault.New(fault.NotFound, "404 page not found").WithCode("not_found")
}

// errMethod reports a method that the path does not take, such as HEAD: no request by it consumes a
// link.
var errMethod = fault.New(fault.Invalid, "Method Not Allowed").WithCode("method_not_allowed")

// patternOf replaces the UUIDs in a path by {id} and returns them.
func patternOf(path string) (string, []uuid.UUID) {
	segments := strings.Split(strings.TrimSuffix(path, "/"), "/")

	var ids []uuid.UUID
	for i, s := range segments {
		if id, err := uuid.Parse(s); err == nil && len(s) == 36 {
			ids, segments[i] = append(ids, id), "{id}"
		}
	}

	return strings.Join(segments, "/"), ids
}

// networkOf returns a client's network key for rate limits.
func networkOf(a netip.Addr) string { return httpx.Network(a) }

// checkQuery fails with Invalid for a form parameter that PostgreSQL can't store.
func checkQuery(q url.Values) error {
	if !pg.StorableValues(q) {
		return fault.New(fault.Invalid, "Parameters must be UTF-8 without null characters").WithCode("validation_failed")
	}

	return nil
}

// decode reads the JSON body into v, whose members are all optional.
func (c *call) decode(v any) error {
	return c.readBody(func(body []byte) error {
		if len(body) == 0 {
			return nil
		}

		if err := json.Unmarshal(body, v); err != nil {
			text := "Could not parse request body as JSON"
			if path, want := httpx.WrongType(body, err); path != "" {
				text += ": " + path + " must be " + want
			}

			return fault.New(fault.Invalid, "%s", text).WithCode("bad_json").WithCause(err)
		}
		if !pg.StorableJSON(body) {
			return fault.New(fault.Invalid, "Request body must be UTF-8, without null characters, lone surrogates and "+
				"numbers out of range").WithCode("bad_json")
		}

		return nil
	})
}

// uuidIn returns the UUID in a body member, the zero one for an absent member.
func uuidIn(member, text string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}

	id, err := uuid.Parse(text)
	if err != nil {
		return id, fault.New(fault.Invalid, "Could not parse request body as JSON: %s must be a UUID", member).
			WithCode("bad_json").WithCause(err)
	}

	return id, nil
}

// readBody calls f with the body, within the budget for bodies.
func (c *call) readBody(f func(body []byte) error) error {
	ctx := c.r.Context()
	lease, err := c.bodies.Acquire(ctx, c.Directory.Key(ctx), maxBody)
	if err != nil {
		return &fault.Error{Kind: fault.TooMany, Code: "over_request_rate_limit", Detail: "Request rate limit reached"}
	}
	defer lease.Release()

	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return fault.New(fault.TooLarge, "Request body is larger than %d bytes", maxBody).WithCode("request_too_large")
	}
	if err != nil {
		return fault.New(fault.Invalid, "Could not read the body").WithCode("bad_json").WithCause(err)
	}

	return f(body)
}

// respond writes a response.
func (c *call) respond(status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}

	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(text) // fails only if the client has disconnected

	return nil
}

// empty is the response where there is nothing to say. Clients expect JSON.
func (c *call) empty() error { return c.respond(http.StatusOK, struct{}{}) }

// redirectTo returns the address that a link should lead to: a parameter, or the requesting page.
func (c *call) redirectTo() string {
	if to := c.r.URL.Query().Get("redirect_to"); to != "" {
		return to
	}
	return c.r.Header.Get("Redirect_to")
}
