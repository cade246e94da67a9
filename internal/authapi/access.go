package authapi

import (
	"net/netip"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
)

// anyone admits requests without a key.
func anyone(*call) error { return nil }

// withKey admits requests with a project's key or token.
func withKey(c *call) error {
	text, bearer := c.credentials()
	if text == "" {
		return fault.New(fault.Unauthenticated, "No API key found in request").WithCode("no_authorization")
	}

	caller, err := c.authenticate(text)
	if err != nil {
		return err
	}

	c.caller, c.bearer = caller, bearer
	return c.forward()
}

// forwardedFor is the header in which a server of the application names the address of the person
// for whom it sends a request.
const forwardedFor = "Sb-Forwarded-For"

// forward charges a request with a secret key to the network of the person for whom it is sent. It
// ignores the header of anybody else, who could choose a network for each guess.
func (c *call) forward() error {
	text, key := c.r.Header.Get(forwardedFor), c.r.Header.Get("Apikey")
	if text == "" || key == "" {
		return nil
	}

	caller, err := c.authenticate(key)
	if err != nil || caller.Role != "service_role" {
		return err
	}

	address, err := netip.ParseAddr(text)
	if err != nil {
		return fault.New(fault.Invalid, "%s must be an IP address", forwardedFor).WithCode("validation_failed").
			WithCause(err)
	}

	c.client.Address = address.Unmap().WithZone("")
	c.client.Network = networkOf(c.client.Address)

	return nil
}

// credentials returns a request's key or token. A token in the Authorization header goes first, but
// clients repeat the key there.
func (c *call) credentials() (text string, bearer bool) {
	scheme, token, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "bearer") {
		token = ""
	}

	key := c.r.Header.Get("Apikey")
	if token == "" || (key != "" && !strings.Contains(token, ".")) {
		return key, token != ""
	}

	return token, true
}

// authenticate returns the caller with a key or a token.
func (c *call) authenticate(text string) (gateway.Caller, error) {
	caller, err := c.door.Verify(c.r.Context(), text)
	if !fault.Is(err, fault.Unauthenticated) {
		return caller, err
	}

	if strings.Contains(text, ".") {
		return caller, fault.New(fault.Forbidden,
			"invalid JWT: unable to parse or verify signature, %s", strings.ToLower(fault.Of(err).Detail)).WithCode("bad_jwt")
	}

	return caller, fault.New(fault.Unauthenticated, "Invalid API key").WithCode("no_authorization")
}

// withToken admits requests with a user's token. One that the application's server has signed has
// no session.
func withToken(c *call) error {
	scheme, token, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return fault.New(fault.Unauthenticated, "This endpoint requires a valid Bearer token").
			WithCode("no_authorization")
	}

	// Clients without a session repeat the key. Anything else without a dot is no token.
	if key := c.r.Header.Get("Apikey"); key != "" && token != key && !strings.Contains(token, ".") {
		return fault.New(fault.Forbidden,
			"invalid JWT: unable to parse or verify signature, token is malformed").WithCode("bad_jwt")
	}
	if err := withKey(c); err != nil {
		return err
	}

	switch _, err := uuid.Parse(c.caller.Subject); {
	case c.caller.Subject == "":
		return fault.New(fault.Forbidden, "invalid claim: missing sub claim").WithCode("bad_jwt")
	case err != nil:
		return fault.New(fault.Invalid, "invalid claim: sub claim must be a UUID").WithCode("bad_jwt")
	}

	httpx.From(c.r.Context()).Token = true
	return nil
}

// withUser admits requests with an access token from a user's session.
func withUser(c *call) error {
	if err := withToken(c); err != nil {
		return err
	}
	if c.identity().Session == uuid.Nil {
		return enduser.ErrSessionMissing()
	}

	return nil
}

// identity returns the user and the session in the token that withToken has admitted.
func (c *call) identity() enduser.Identity {
	user, _ := uuid.Parse(c.caller.Subject)
	session, _ := uuid.Parse(c.caller.Session)

	return enduser.Identity{User: user, Session: session}
}

// asAdmin admits requests with a secret key, or a service_role token.
func asAdmin(c *call) error {
	if text, _ := c.credentials(); text == "" {
		return fault.New(fault.Unauthenticated, "This endpoint requires a valid Bearer token").
			WithCode("no_authorization")
	}
	if err := withKey(c); err != nil {
		return err
	}
	if c.caller.Role != "service_role" {
		return fault.New(fault.Forbidden, "User not allowed").WithCode("not_admin")
	}

	return nil
}
