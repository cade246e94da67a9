package authapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
)

func (c *call) health([]uuid.UUID) error {
	return c.respond(http.StatusOK, map[string]string{
		"version": build.Version(), "name": "GoTrue", "description": "Socle serves the contract of GoTrue"})
}

// externalProviders are the ways to sign in that clients ask for.
var externalProviders = []string{
	"apple", "azure", "bitbucket", "discord", "facebook", "figma", "fly", "github", "gitlab", "google", "kakao",
	"keycloak", "linkedin", "linkedin_oidc", "notion", "slack", "slack_oidc", "snapchat", "spotify", "twitch",
	"twitter", "workos", "x", "zoom",
}

func (c *call) settings([]uuid.UUID) error {
	external := map[string]bool{"email": true, "anonymous_users": c.AnonymousSignIn}
	for _, name := range externalProviders {
		external[name] = false
	}
	external["phone"] = c.SMS.SignIn
	for name, p := range c.Providers {
		external[name] = p.Enabled
	}

	return c.respond(http.StatusOK, map[string]any{
		"external": external, "disable_signup": !c.Settings.SignUp, "mailer_autoconfirm": !c.ConfirmEmail,
		"phone_autoconfirm": c.SMS.AutoConfirm, "sms_provider": c.SMS.Sender,
		"saml_enabled": false, "passkeys_enabled": c.WebAuthn.Passkeys})
}

func (c *call) jwks([]uuid.UUID) error {
	keys, err := c.PublishedKeys()
	if err != nil {
		return err
	}

	c.w.Header().Set("Cache-Control", "public, max-age=600")
	return c.respond(http.StatusOK, map[string]any{"keys": keys})
}

// flow has the request members that begin a PKCE flow.
type flow struct {
	CodeChallenge       string `json:"code_challenge"`
	CodeChallengeMethod string `json:"code_challenge_method"`
}

func (f flow) challenge() enduser.Challenge {
	return enduser.Challenge{Code: f.CodeChallenge, Method: f.CodeChallengeMethod}
}

func (c *call) signUp([]uuid.UUID) error {
	var in struct {
		flow
		captchaToken
		Email, Phone, Password, Channel string
		Data                            json.RawMessage
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if err := c.checkCaptcha(in.captchaToken); err != nil {
		return err
	}

	switch {
	case in.Email != "" && in.Phone != "":
		return fault.New(fault.Invalid, "Only an email address or phone number should be provided on signup.").
			WithCode("validation_failed")
	case in.Email == "" && in.Phone == "" && in.Password == "":
		s, err := c.SignInAnonymously(c.r.Context(), in.Data, c.client)
		if err != nil {
			return err
		}
		return c.respond(http.StatusOK, s)
	}

	var done enduser.SignedUp
	var err error
	if in.Phone != "" {
		done, err = c.SignUpByPhone(c.r.Context(), enduser.PhoneSignUp{Phone: in.Phone, Password: in.Password,
			Data: in.Data, Channel: in.Channel}, c.client)
	} else {
		done, err = c.Directory.SignUp(c.r.Context(), enduser.SignUp{Email: in.Email, Password: in.Password,
			Data: in.Data, Challenge: in.challenge(), RedirectTo: c.redirectTo()}, c.client)
	}

	switch {
	case err != nil:
		return err
	case done.Session != nil:
		return c.respond(http.StatusOK, done.Session)
	}

	return c.respond(http.StatusOK, done.User)
}

func (c *call) token([]uuid.UUID) error {
	var in struct {
		captchaToken
		Email, Phone, Password string
		RefreshToken           string `json:"refresh_token"`
		AuthCode               string `json:"auth_code"`
		CodeVerifier           string `json:"code_verifier"`
		Provider, Nonce        string
		IDToken                string `json:"id_token"`
		AccessToken            string `json:"access_token"`
		LinkIdentity           bool   `json:"link_identity"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	var s enduser.Session
	var err error
	switch grant := c.r.URL.Query().Get("grant_type"); grant {
	case "password":
		if err := c.checkCaptcha(in.captchaToken); err != nil {
			return err
		}
		s, err = c.login(in.Email, in.Phone, in.Password)
	case "refresh_token":
		if in.RefreshToken == "" {
			return fault.New(fault.Invalid, "refresh_token required").WithCode("validation_failed")
		}
		s, err = c.Refresh(c.r.Context(), in.RefreshToken, c.client)
	case "pkce":
		s, err = c.ExchangeCode(c.r.Context(), in.AuthCode, in.CodeVerifier, c.client)
	case "web3":
		return fault.New(fault.Unprocessable, "Web3 provider is disabled").WithCode("web3_provider_disabled")
	case "id_token":
		signIn := enduser.IDTokenSignIn{Provider: in.Provider, IDToken: in.IDToken, AccessToken: in.AccessToken,
			Nonce: in.Nonce}
		if in.LinkIdentity {
			if err := withUser(c); err != nil {
				return err
			}
			who := c.identity()
			signIn.Linking = &who
		}
		s, err = c.SignInWithIDToken(c.r.Context(), signIn, c.client)
	default:
		return fault.New(fault.Invalid, "unsupported_grant_type").WithCode("validation_failed")
	}
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, s)
}

// login opens a session by a password and an address or a number.
func (c *call) login(email, phone, password string) (enduser.Session, error) {
	switch {
	case email != "" && phone != "":
		return enduser.Session{}, fault.New(fault.Invalid,
			"Only an email address or phone number should be provided on login.").WithCode("validation_failed")
	case phone != "":
		return c.LoginByPhone(c.r.Context(), phone, password, c.client)
	}

	return c.Login(c.r.Context(), email, password, c.client)
}

func (c *call) recover([]uuid.UUID) error {
	var in struct {
		flow
		captchaToken
		Email string
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if err := c.checkCaptcha(in.captchaToken); err != nil {
		return err
	}

	if err := c.Recover(c.r.Context(), enduser.LinkRequest{Email: in.Email, Challenge: in.challenge(),
		RedirectTo: c.redirectTo()}, c.client); err != nil {
		return err
	}

	return c.empty()
}

func (c *call) otp([]uuid.UUID) error {
	var in struct {
		flow
		captchaToken
		Email, Phone, Channel string
		Data                  json.RawMessage
		CreateUser            *bool `json:"create_user"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if err := c.checkCaptcha(in.captchaToken); err != nil {
		return err
	}
	if in.Email != "" && in.Phone != "" {
		return fault.New(fault.Invalid, "Only an email address or phone number should be provided").
			WithCode("validation_failed")
	}

	if in.Email == "" && in.Phone == "" {
		return fault.New(fault.Invalid, "One of email or phone must be set").WithCode("validation_failed")
	}

	create := in.CreateUser == nil || *in.CreateUser
	var err error
	if in.Phone != "" {
		err = c.SendPhoneCode(c.r.Context(), enduser.PhoneCodeRequest{Phone: in.Phone, Data: in.Data,
			CreateUser: create, Channel: in.Channel}, c.client)
	} else {
		err = c.SendCode(c.r.Context(), enduser.LinkRequest{Email: in.Email, Data: in.Data, Challenge: in.challenge(),
			CreateUser: create, RedirectTo: c.redirectTo()}, c.client)
	}
	if err != nil {
		return err
	}

	return c.empty()
}

func (c *call) resend([]uuid.UUID) error {
	var in struct {
		flow
		captchaToken
		Type, Email, Phone string
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if err := c.checkCaptcha(in.captchaToken); err != nil {
		return err
	}
	if in.Email != "" && in.Phone != "" {
		return fault.New(fault.Invalid, "Only an email address or phone number should be provided.").
			WithCode("validation_failed")
	}

	var err error
	if in.Phone != "" {
		err = c.ResendPhoneCode(c.r.Context(), in.Type, in.Phone, c.client)
	} else {
		err = c.Resend(c.r.Context(), in.Type, enduser.LinkRequest{Email: in.Email, Challenge: in.challenge(),
			RedirectTo: c.redirectTo()}, c.client)
	}
	if err != nil {
		return err
	}

	return c.empty()
}

// halfConfirmed is the text after the first half of an address change.
const halfConfirmed = "Confirmation link accepted. Please proceed to confirm link sent to the other email"

func (c *call) verify([]uuid.UUID) error {
	var in struct {
		Type, Token, Email, Phone string
		TokenHash                 string `json:"token_hash"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	switch {
	case in.Token == "" && in.TokenHash == "":
		return fault.New(fault.Invalid, "Verify requires a token or a token hash").WithCode("validation_failed")
	case in.TokenHash != "" && (in.Email != "" || in.Phone != ""):
		return fault.New(fault.Invalid, "Only the token_hash and type should be provided").WithCode("validation_failed")
	case in.Email != "" && in.Phone != "":
		return fault.New(fault.Invalid, "Only an email address or phone number should be provided on verify").
			WithCode("validation_failed")
	case in.Phone != "":
		s, err := c.VerifyPhone(c.r.Context(), in.Type, in.Phone, in.Token, c.client)
		if err != nil {
			return err
		}
		return c.respond(http.StatusOK, s)
	}

	verified, err := c.Directory.Verify(c.r.Context(), enduser.Verification{Type: in.Type, Hash: in.TokenHash,
		Email: in.Email,
		Code:  in.Token}, false, c.client)
	switch {
	case err != nil:
		return err
	case verified.Session != nil:
		return c.respond(http.StatusOK, verified.Session)
	}

	return c.respond(http.StatusOK, map[string]string{"msg": halfConfirmed, "code": "200"})
}

// openLink serves a mailed link. It answers a browser, so each failure is a redirect. A prefetch
// gets nothing and consumes nothing.
func (c *call) openLink([]uuid.UUID) error {
	for _, name := range []string{"Purpose", "Sec-Purpose", "X-Moz", "X-Purpose"} {
		if strings.Contains(strings.ToLower(c.r.Header.Get(name)), "prefetch") ||
			strings.Contains(strings.ToLower(c.r.Header.Get(name)), "preview") {
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}

	q := c.r.URL.Query()
	to := c.Redirect(q.Get("redirect_to"))

	verified, err := c.Directory.Verify(c.r.Context(), enduser.Verification{Type: q.Get("type"),
		Hash: q.Get("token")}, true, c.client)
	fragment, params := url.Values{}, url.Values{}
	switch {
	case err != nil:
		status, code, text, _ := statusOf(err)
		if status >= http.StatusInternalServerError {
			return err
		}

		fragment.Set("error", map[bool]string{true: "access_denied",
			false: "invalid_request"}[status == http.StatusForbidden])
		fragment.Set("error_code", code)
		fragment.Set("error_description", linkFailure(code, text))
		for name := range fragment {
			params.Set(name, fragment.Get(name))
		}
	case verified.AuthCode != "":
		params.Set("code", verified.AuthCode)
	case verified.Session != nil:
		s := verified.Session
		fragment = sessionFragment(*s)
		fragment.Set("type", q.Get("type"))
	default:
		fragment.Set("message", halfConfirmed)
	}

	return c.redirect(to, params, fragment)
}

// sessionFragment returns a session as an address fragment, which reaches no server.
func sessionFragment(s enduser.Session) url.Values {
	return url.Values{"access_token": {s.AccessToken}, "refresh_token": {s.RefreshToken}, "token_type": {s.TokenType},
		"expires_in": {strconv.Itoa(s.ExpiresIn)}, "expires_at": {strconv.FormatInt(s.ExpiresAt, 10)}, "sb": {""}}
}

// linkFailure is the text for a person who has opened a link.
func linkFailure(code, text string) string {
	if code == "otp_expired" {
		return "Email link is invalid or has expired"
	}
	return text
}

// redirect sends a browser to an address, with parameters and a fragment. No other page learns it.
func (c *call) redirect(to string, params, fragment url.Values) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}

	q := u.Query()
	for name := range params {
		q.Set(name, params.Get(name))
	}

	u.RawQuery, u.Fragment, u.RawFragment = q.Encode(), "", ""
	location := u.String()
	if len(fragment) > 0 {
		location += "#" + fragment.Encode()
	}

	c.sendTo(location)
	return nil
}

// sendTo sends the browser to an address as it is.
func (c *call) sendTo(location string) {
	h := c.w.Header()
	h.Set("Location", location)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	c.w.WriteHeader(http.StatusSeeOther)
}
