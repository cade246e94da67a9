package authapi

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/webauthn"
)

func (c *call) enroll([]uuid.UUID) error {
	var in struct {
		FactorType   string `json:"factor_type"`
		FriendlyName string `json:"friendly_name"`
		Issuer       string
		Phone        string
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	switch in.FactorType {
	case "totp":
		f, err := c.EnrollFactor(c.r.Context(), c.identity(), in.FriendlyName, in.Issuer)
		if err != nil {
			return err
		}

		return c.respond(http.StatusOK, map[string]any{"id": f.ID, "type": "totp", "friendly_name": f.FriendlyName,
			"totp": map[string]string{"qr_code": f.QRCode, "secret": f.Secret, "uri": f.URL}})
	case "phone":
		f, err := c.EnrollPhone(c.r.Context(), c.identity(), in.FriendlyName, in.Phone)
		if err != nil {
			return err
		}

		return c.respond(http.StatusOK, map[string]any{"id": f.ID, "type": "phone", "friendly_name": f.FriendlyName,
			"phone": f.Phone})
	case "webauthn":
		f, err := c.EnrollAuthenticator(c.r.Context(), c.identity(), in.FriendlyName)
		if err != nil {
			return err
		}

		return c.respond(http.StatusOK, map[string]any{"id": f.ID, "type": "webauthn", "friendly_name": f.FriendlyName})
	}

	return fault.New(fault.Invalid, "factor_type needs to be totp, phone, or webauthn").WithCode("validation_failed")
}

func (c *call) challenge(ids []uuid.UUID) error {
	var in struct {
		Channel  string
		WebAuthn struct {
			ID      string   `json:"rpId"`
			Origins []string `json:"rpOrigins"`
		} `json:"webauthn"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if err := c.CheckRelyingParty(in.WebAuthn.ID, in.WebAuthn.Origins); err != nil {
		return err
	}

	made, err := c.ChallengeFactor(c.r.Context(), c.identity(), ids[0], in.Channel, c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, struct {
		ID            uuid.UUID                       `json:"id"`
		Type          string                          `json:"type"`
		ExpiresAt     int64                           `json:"expires_at"`
		Authenticator *enduser.AuthenticatorChallenge `json:"webauthn,omitempty"`
	}{made.ID, made.Type, made.ExpiresAt.Unix(), made.Authenticator})
}

func (c *call) verifyFactor(ids []uuid.UUID) error {
	var in struct {
		ChallengeID string `json:"challenge_id"`
		Code        string
		WebAuthn    *struct {
			Response webauthn.Response `json:"credential_response"`
		} `json:"webauthn"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	challenge, err := uuidIn("challenge_id", in.ChallengeID)
	if err != nil {
		return err
	}

	var s enduser.Session
	if in.WebAuthn != nil {
		s, err = c.VerifyAuthenticator(c.r.Context(), c.identity(), ids[0], challenge, in.WebAuthn.Response,
			c.client)
	} else {
		s, err = c.VerifyFactor(c.r.Context(), c.identity(), ids[0], challenge, in.Code, c.client)
	}
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

func (c *call) createRecoveryCodes([]uuid.UUID) error {
	codes, err := c.CreateRecoveryCodes(c.r.Context(), c.identity(), c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, map[string][]string{"codes": codes})
}

func (c *call) countRecoveryCodes([]uuid.UUID) error {
	n, err := c.CountRecoveryCodes(c.r.Context(), c.identity())
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, map[string]int{"unused": n})
}

func (c *call) useRecoveryCode([]uuid.UUID) error {
	var in struct{ Code string }
	if err := c.decode(&in); err != nil {
		return err
	}

	s, err := c.UseRecoveryCode(c.r.Context(), c.identity(), in.Code, c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, s)
}
