package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/oauth"
)

const consentRoute = "/projects/{project}/oauth/consent"

// consent is a request for the page where an end user decides about an OAuth client. It is for
// projects whose application has no page of its own. The user signs in with each approval, so there
// is no session in the browser that another site could use.
type consent struct {
	server  *oauth.Server
	pending oauth.Pending
	client  enduser.Client
}

// consentPage serves the page.
func (p *Pages) consentPage(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = r.Method + " " + consentRoute

	if !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost}, r.Method) {
		httpx.From(r.Context()).Route = consentRoute
		refuseMethod(w, r, "GET, HEAD, POST")
		return
	}

	c, err := p.openConsent(r)
	if err != nil {
		renderFailure(w, r, err, page{Title: "The request is no longer valid",
			Text: []string{"It has expired, or was decided before. Go back to the application and begin again."}})
		return
	}
	if r.Method != http.MethodPost {
		render(w, r, http.StatusOK, c.page(r))
		return
	}

	in, err := p.readForm(w, r)
	if err != nil {
		renderFailure(w, r, err, page{Title: "The form can't be submitted",
			Text: []string{sentence(fault.Of(err).Detail)}})
		return
	}

	to, err := c.decide(r.Context(), in)
	if err != nil {
		view := c.page(r)
		view.fill(in)
		view.fail(err)
		render(w, r, noteFailure(w, r, err), view)
		return
	}

	h := w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// openConsent returns a request's pending authorization.
func (p *Pages) openConsent(r *http.Request) (consent, error) {
	request := httpx.From(r.Context())
	c := consent{client: enduser.Client{Address: request.Client, Network: httpx.Network(request.Client),
		Agent: request.UserAgent}}

	project, projectErr := uuid.Parse(r.PathValue("project"))
	id, idErr := uuid.Parse(r.URL.Query().Get("authorization_id"))
	if projectErr != nil || idErr != nil {
		return c, fault.Missing()
	}

	d, err := p.EndUsers.Open(r.Context(), project)
	if err != nil {
		return c, err
	}
	if c.server, err = oauth.Of(d); err != nil {
		return c, err
	}
	if d.OAuthServer.AuthorizationPath != "" {
		return c, fault.Missing() // the application decides
	}

	request.Project = project
	c.pending, err = c.server.View(r.Context(), id)

	return c, err
}

// scopeTexts say what a client learns by a scope.
var scopeTexts = map[string]string{
	"openid":  "who you are here",
	"email":   "your e-mail address",
	"phone":   "your phone number",
	"profile": "your name and picture",
}

func (c consent) page(r *http.Request) page {
	name := cmp.Or(c.pending.Client.Name, "An application without a name")
	site, _ := url.Parse(c.server.SiteURL) // was validated

	var scopes []string
	for _, scope := range strings.Fields(c.pending.Scope) {
		scopes = append(scopes, scopeTexts[scope])
	}

	to := c.pending.RedirectURI
	if u, err := url.Parse(to); err == nil && u.Host != "" {
		to = u.Scheme + "://" + u.Host
	}

	return page{
		Title: "Allow " + name + " to use your account?",
		Text: []string{name + " asks for access to your account at " + site.Host + ". It can do there what you can do.",
			"It learns: " + strings.Join(scopes, ", ") + ". You are sent to " + to + " afterwards.",
			"To allow it, sign in with your account at " + site.Host + "."},
		Form: &form{Action: r.URL.RequestURI(), Button: "Sign in and allow", Decline: "Deny", Inputs: []input{
			{Name: "email", Label: "E-mail address", Type: "email", Required: true, Autocomplete: "username"},
			{Name: "password", Label: "Password", Type: "password", Required: true, Autocomplete: "current-password"},
			{Name: "code", Label: "Code of your second factor", Type: "text", Autocomplete: "one-time-code",
				Optional: true, Help: "If you have set one up: six digits from the app, or a recovery code."},
		}},
		Aside: "Deny if you did not begin this in " + name + " yourself.",
		Theme: theme{Redirect: c.pending.RedirectURI},
	}
}

// decide carries out the decision, and returns the client's address.
func (c consent) decide(ctx context.Context, in url.Values) (to string, err error) {
	if in.Get(declineName) != "" {
		return c.server.Deny(ctx, c.pending.ID)
	}

	who, err := c.server.SignInOnce(ctx, in.Get("email"), in.Get("password"), in.Get("code"), c.client)
	if err != nil {
		return "", err
	}

	to, err = c.server.Decide(ctx, who, c.pending.ID, true, c.client)
	if logoutErr := c.server.Logout(context.WithoutCancel(ctx), who, enduser.ScopeLocal, c.client); err == nil {
		err = logoutErr
	}

	return to, err
}
