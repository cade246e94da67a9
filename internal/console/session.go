package console

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
)

const (
	maxBody       = 16 << 10 // bytes, as for anonymous requests to the API
	maxCodeLength = 64       // bytes, as in operation login
)

// failures are the failure statuses of all requests about the session.
var failures = []int{400, 401, 403, 413, 429, 500}

// accessToken is what scripts may know of a session's credentials.
type accessToken struct {
	Token     string    `json:"token"`
	TokenType string    `json:"tokenType"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// logIn opens a session.
func (c *Console) logIn(w http.ResponseWriter, r *http.Request) {
	in, err := c.readCredentials(w, r)
	if err != nil {
		operation.WriteFailure(w, r, err, failures)
		return
	}

	fields := []string{"email", "password"}
	if in.Code != "" {
		fields = []string{"code", "email", "password"}
	}

	ctx, cancel := c.begin(r, "login", fields...)
	defer cancel()

	signedIn, err := c.Accounts.Login(ctx, operation.ClientOf(ctx), in)
	c.respond(w, r, signedIn, err)
}

// refresh renews the session of the cookie.
func (c *Console) refresh(w http.ResponseWriter, r *http.Request) {
	if err := c.check(r); err != nil {
		operation.WriteFailure(w, r, err, failures)
		return
	}

	ctx, cancel := c.begin(r, "refreshSession")
	defer cancel()

	signedIn, err := c.Accounts.RefreshSharedSession(ctx, operation.ClientOf(ctx), c.refreshToken(r))
	if fault.Is(err, fault.Unauthenticated) {
		c.clearCookie(w, r)
		err = c.explainNoSession(ctx, err)
	}

	c.respond(w, r, signedIn, err)
}

// explainNoSession returns the failure for a browser without a session: err, or no_administrator if
// nobody can log in yet, so that the console shows the set-up.
func (c *Console) explainNoSession(ctx context.Context, err error) error {
	if claimed, unknown := c.Accounts.Claimed(ctx); unknown != nil || claimed {
		return err
	}

	return fault.New(fault.Unauthenticated, "the instance has no administrator yet").WithCode("no_administrator").
		WithCause(err)
}

// logOut ends the session of the cookie.
func (c *Console) logOut(w http.ResponseWriter, r *http.Request) {
	if err := c.check(r); err != nil {
		operation.WriteFailure(w, r, err, failures)
		return
	}

	ctx, cancel := c.begin(r, "logout")
	defer cancel()

	ended, err := c.Accounts.EndSession(ctx, c.refreshToken(r))
	if err == nil || fault.Is(err, fault.Unauthenticated) {
		c.clearCookie(w, r)
	}
	if err != nil {
		operation.WriteFailure(w, r, err, failures)
		return
	}

	w.Header().Set("Cache-Control", "no-store")
	operation.Respond(w, http.StatusOK, ended, struct{}{})
}

// respond responds with a session: the refresh token in the cookie, the rest in the body.
func (c *Console) respond(w http.ResponseWriter, r *http.Request, in account.SignedIn, err error) {
	if err != nil {
		operation.WriteFailure(w, r, err, failures)
		return
	}

	cookie := c.cookie(r)
	cookie.Value, cookie.Expires = in.Tokens.RefreshToken, in.Tokens.RefreshExpiresAt
	http.SetCookie(w, cookie)

	w.Header().Set("Cache-Control", "no-store")
	operation.Respond(w, http.StatusOK, in.User,
		accessToken{in.Tokens.Token, in.Tokens.TokenType, in.Tokens.ExpiresAt})
}

// begin returns a context with the time limit of operations, in which a change appends an entry to
// the audit log. The action is the operation with the same purpose.
func (c *Console) begin(r *http.Request, action string, fields ...string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(r.Context(), operation.DefaultTimeout)

	e := operation.AuditEntry(ctx)
	e.Action, e.Target, e.Fields = action, r.URL.Path, fields

	return audit.Begin(ctx, c.AuditKey, e), cancel
}

// check fails unless the console sent the request: with Forbidden if it came from another origin,
// and with Invalid if it has a content type that forms of other sites can send.
func (c *Console) check(r *http.Request) error {
	if err := c.crossOrigin.Check(r); err != nil {
		return fault.New(fault.Forbidden, "the request was sent by another site").WithCause(err)
	}

	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be application/json")
	}

	return nil
}

// readCredentials reads the body of a log-in.
func (c *Console) readCredentials(w http.ResponseWriter, r *http.Request) (account.Credentials, error) {
	if err := c.check(r); err != nil {
		return account.Credentials{}, err
	}

	var in struct {
		Email    *string `json:"email"`
		Password *string `json:"password"`
		Code     string  `json:"code"`
	}
	err := json.UnmarshalRead(http.MaxBytesReader(w, r.Body, maxBody), &in)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return account.Credentials{}, fault.New(fault.TooLarge, "the body is larger than %d bytes", maxBody)
	}
	if err != nil {
		return account.Credentials{}, fault.New(fault.Invalid, "the body is not JSON with texts as credentials").
			WithCode("malformed_json").WithCause(err)
	}

	for _, f := range []struct {
		name  string
		value *string
	}{{"email", in.Email}, {"password", in.Password}, {"code", &in.Code}} {
		switch {
		case f.value == nil:
			return account.Credentials{}, fault.OnField(fault.Invalid, f.name, "required", "is required")
		case strings.ContainsRune(*f.value, 0):
			return account.Credentials{}, fault.OnField(fault.Invalid, f.name, "invalid_format",
				"must not contain the character NUL")
		}
	}

	if len(in.Code) > maxCodeLength {
		return account.Credentials{}, fault.OnField(fault.Invalid, "code", "too_long", "must be at most %d characters",
			maxCodeLength)
	}

	return account.Credentials{Email: *in.Email, Password: *in.Password, Code: in.Code}, nil
}
