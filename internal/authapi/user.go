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
		Email, Phone, Password, Nonce string
		CurrentPassword               string `json:"current_password"`
		Data                          json.RawMessage
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if in.Phone != "" {
		return fault.New(fault.Invalid, "Unsupported phone provider").WithCode("phone_provider_disabled")
	}

	u, err := c.UpdateSelf(c.r.Context(), c.identity(), enduser.Update{Email: in.Email, Password: in.Password,
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

func (c *call) enroll([]uuid.UUID) error {
	var in struct {
		FactorType   string `json:"factor_type"`
		FriendlyName string `json:"friendly_name"`
		Issuer       string
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	switch in.FactorType {
	case "totp":
	case "phone":
		return fault.New(fault.Unprocessable, "MFA enroll is disabled for Phone").
			WithCode("mfa_phone_enroll_not_enabled")
	case "webauthn":
		return fault.New(fault.Unprocessable, "MFA enroll is disabled for WebAuthn").
			WithCode("mfa_webauthn_enroll_not_enabled")
	default:
		return fault.New(fault.Invalid, "factor_type needs to be totp, phone, or webauthn").WithCode("validation_failed")
	}

	f, err := c.EnrollFactor(c.r.Context(), c.identity(), in.FriendlyName, in.Issuer)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, map[string]any{"id": f.ID, "type": "totp", "friendly_name": f.FriendlyName,
		"totp": map[string]string{"qr_code": f.QRCode, "secret": f.Secret, "uri": f.URL}})
}

func (c *call) challenge(ids []uuid.UUID) error {
	id, ends, err := c.ChallengeFactor(c.r.Context(), c.identity(), ids[0], c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, map[string]any{"id": id, "type": "totp", "expires_at": ends.Unix()})
}

func (c *call) verifyFactor(ids []uuid.UUID) error {
	var in struct {
		ChallengeID uuid.UUID `json:"challenge_id"`
		Code        string
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	s, err := c.VerifyFactor(c.r.Context(), c.identity(), ids[0], in.ChallengeID, in.Code, c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, s)
}

func (c *call) unenroll(ids []uuid.UUID) error {
	if err := c.UnenrollFactor(c.r.Context(), c.identity(), ids[0], c.client); err != nil {
		return err
	}
	return c.respond(http.StatusOK, map[string]uuid.UUID{"id": ids[0]})
}
