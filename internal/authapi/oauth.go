package authapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
)

// maxBindings is the number of sign-ins with providers that a browser keeps under way. Each has a
// cookie.
const maxBindings = 10

// authorize sends a browser to a provider. Mistakes of the application's request are failures as
// JSON, all later ones are redirects.
func (c *call) authorize([]uuid.UUID) error {
	q := c.r.URL.Query()
	if q.Has("link") {
		f, err := c.OpenFlow(q.Get("link"), false)
		if err != nil {
			return c.redirectFailure(c.SiteURL, err)
		}
		return c.depart(f, q)
	}

	f, err := c.newFlow(q)
	if err != nil {
		return err
	}

	if q.Get("skip_http_redirect") == "true" {
		q.Del("skip_http_redirect")
		return c.respond(http.StatusOK, map[string]string{"url": c.AuthorizeURL(q)})
	}

	return c.depart(f, q)
}

// newFlow returns the flow for an application's parameters.
func (c *call) newFlow(q url.Values) (enduser.OAuthFlow, error) {
	return c.NewFlow(q.Get("provider"), c.redirectTo(),
		enduser.Challenge{Code: q.Get("code_challenge"), Method: q.Get("code_challenge_method")})
}

// depart sends the browser to the provider, with a cookie for its return.
func (c *call) depart(f enduser.OAuthFlow, parameters url.Values) error {
	d, err := c.Depart(c.r.Context(), f, parameters, c.client)
	if err != nil {
		return c.redirectFailure(f.RedirectTo, err)
	}

	var others []string
	for _, cookie := range c.r.Cookies() {
		if strings.HasPrefix(cookie.Name, c.cookieName(enduser.BindingPrefix)) {
			others = append(others, cookie.Name)
		}
	}
	for _, name := range others[:max(0, len(others)-maxBindings+1)] {
		c.setCookie(&http.Cookie{Name: name, MaxAge: -1})
	}

	cookie := http.Cookie{Name: c.cookieName(d.Flow.BindingName()), Value: d.Binding,
		MaxAge: int(enduser.FlowTTL.Seconds())}
	if d.CrossSite && c.IsSecure() {
		cookie.SameSite = http.SameSiteNoneMode
	}
	c.setCookie(&cookie)

	return c.redirect(d.URL, nil, nil)
}

// cookieName returns a cookie's name. Its prefix keeps the domain's other hosts from setting one,
// by which they would sign a visitor in as another user.
func (c *call) cookieName(name string) string {
	if c.IsSecure() {
		return "__Host-" + name
	}
	return name
}

// setCookie sends a cookie that no script reads, with the attributes that its prefix demands.
func (c *call) setCookie(cookie *http.Cookie) {
	cookie.Path, cookie.HttpOnly, cookie.Secure = "/", true, c.IsSecure()
	if cookie.SameSite == 0 {
		cookie.SameSite = http.SameSiteLaxMode
	}

	http.SetCookie(c.w, cookie)
}

// callback receives a browser that a provider has sent back, by a redirect or by a form.
func (c *call) callback([]uuid.UUID) error {
	q := c.r.URL.Query()
	if c.r.Method == http.MethodPost {
		if err := c.readBody(func(body []byte) (err error) {
			if q, err = url.ParseQuery(string(body)); err != nil {
				return fault.New(fault.Invalid, "Could not parse request body as a form").WithCode("validation_failed").
					WithCause(err)
			}

			return checkQuery(q)
		}); err != nil {
			return err
		}
	}

	f, err := c.OpenFlow(q.Get("state"), true)
	if err != nil {
		return c.redirectFailure(c.SiteURL, err)
	}

	in := enduser.Return{Code: q.Get("code"), Person: q.Get("user"), Error: q.Get("error"),
		Description: q.Get("error_description")}
	name := c.cookieName(f.BindingName())
	if cookie, err := c.r.Cookie(name); err == nil {
		in.Binding = cookie.Value
		c.setCookie(&http.Cookie{Name: name, MaxAge: -1})
	}

	flow, err := c.FinishFlow(c.r.Context(), f, in, c.client)
	switch {
	case err != nil:
		return c.redirectFailure(f.RedirectTo, err)
	case flow.AuthCode != "":
		return c.redirect(f.RedirectTo, url.Values{"code": {flow.AuthCode}}, nil)
	}

	fragment := sessionFragment(*flow.Session)
	for name, value := range map[string]string{"provider_token": flow.Session.ProviderToken,
		"provider_refresh_token": flow.Session.ProviderRefreshToken} {
		if value != "" {
			fragment.Set(name, value)
		}
	}

	return c.redirect(f.RedirectTo, nil, fragment)
}

// redirectFailure sends a browser to an application's address with a failure, in the query and in
// the fragment.
func (c *call) redirectFailure(to string, err error) error {
	status, code, text, _ := statusOf(err)
	if status >= http.StatusInternalServerError {
		httpx.From(c.r.Context()).Err = err
	}

	params := url.Values{"error": {oauthError(status, code)}, "error_code": {code}, "error_description": {text}}
	fragment := url.Values{"sb": {""}}
	for name := range params {
		fragment.Set(name, params.Get(name))
	}

	return c.redirect(to, params, fragment)
}

// refusals are failure codes that concern the person, not the request.
var refusals = []string{"signup_disabled", "user_banned", "provider_email_needs_verification"}

// oauthErrors are RFC 6749 codes that a provider may have sent itself.
var oauthErrors = []string{"invalid_request", "unauthorized_client", "access_denied", "unsupported_response_type",
	"invalid_scope", "server_error", "temporarily_unavailable"}

// oauthError returns the RFC 6749 error for a failure.
func oauthError(status int, code string) string {
	switch {
	case slices.Contains(oauthErrors, code):
		return code
	case status == http.StatusForbidden, slices.Contains(refusals, code):
		return "access_denied"
	case status == http.StatusBadRequest && code != "unexpected_failure":
		return "invalid_request"
	case status == http.StatusUnauthorized:
		return "unauthorized_client"
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return "temporarily_unavailable"
	}

	return "server_error"
}

// linkIdentity returns the address where the user's browser begins to add an identity.
func (c *call) linkIdentity([]uuid.UUID) error {
	q := c.r.URL.Query()
	f, err := c.newFlow(q)
	if err != nil {
		return err
	}

	skip := q.Get("skip_http_redirect") == "true"
	q.Del("skip_http_redirect")

	address, err := c.LinkURL(c.r.Context(), c.identity(), f, q)
	switch {
	case err != nil:
		return err
	case skip:
		return c.respond(http.StatusOK, map[string]string{"url": address})
	}

	return c.redirect(address, nil, nil)
}

func (c *call) unlinkIdentity(ids []uuid.UUID) error {
	if err := c.UnlinkIdentity(c.r.Context(), c.identity(), ids[0], c.client); err != nil {
		return err
	}
	return c.empty()
}
