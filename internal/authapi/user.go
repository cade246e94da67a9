package authapi

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
)

func (c *call) getUser([]uuid.UUID) error {
	u, err := c.Authenticate(c.r.Context(), c.identity())
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, u)
}

func (c *call) updateUser([]uuid.UUID) error {
	var in struct {
		flow
		Email, Phone, Password, Nonce, Channel string
		CurrentPassword                        string `json:"current_password"`
		Data                                   json.RawMessage
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	u, err := c.UpdateSelf(c.r.Context(), c.identity(), enduser.Update{Email: in.Email, Phone: in.Phone,
		Channel: in.Channel, Password: in.Password,
		Nonce:           in.Nonce,
		CurrentPassword: in.CurrentPassword, Data: in.Data, Challenge: in.challenge(),
		RedirectTo: c.redirectTo()}, c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, u)
}

func (c *call) logout([]uuid.UUID) error {
	scope := c.r.URL.Query().Get("scope")
	switch scope {
	case "":
		scope = enduser.ScopeGlobal
	case enduser.ScopeGlobal, enduser.ScopeLocal, enduser.ScopeOthers:
	default:
		return fault.New(fault.Invalid, "Unsupported logout scope %q", scope).WithCode("validation_failed")
	}

	if err := c.Logout(c.r.Context(), c.identity(), scope, c.client); err != nil {
		return err
	}

	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) reauthenticate([]uuid.UUID) error {
	if err := c.Reauthenticate(c.r.Context(), c.identity(), c.client); err != nil {
		return err
	}
	return c.empty()
}
