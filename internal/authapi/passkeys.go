package authapi

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/webauthn"
)

// credential reads an authenticator's response, and the challenge that it answers.
func (c *call) credential() (challenge uuid.UUID, r webauthn.Response, err error) {
	var in struct {
		ChallengeID string            `json:"challenge_id"`
		Credential  webauthn.Response `json:"credential"`
	}
	if err := c.decode(&in); err != nil {
		return uuid.Nil, r, err
	}

	challenge, err = uuidIn("challenge_id", in.ChallengeID)
	return challenge, in.Credential, err
}

func (c *call) startPasskeyRegistration([]uuid.UUID) error {
	options, err := c.StartPasskeyRegistration(c.r.Context(), c.identity(), c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, options)
}

func (c *call) finishPasskeyRegistration([]uuid.UUID) error {
	challenge, response, err := c.credential()
	if err != nil {
		return err
	}

	added, err := c.FinishPasskeyRegistration(c.r.Context(), c.identity(), challenge, response, c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, added)
}

func (c *call) startPasskeySignIn([]uuid.UUID) error {
	var in captchaToken
	if err := c.decode(&in); err != nil {
		return err
	}
	if err := c.checkCaptcha(in); err != nil {
		return err
	}

	options, err := c.StartPasskeySignIn(c.r.Context(), c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, options)
}

func (c *call) finishPasskeySignIn([]uuid.UUID) error {
	challenge, response, err := c.credential()
	if err != nil {
		return err
	}

	s, err := c.FinishPasskeySignIn(c.r.Context(), challenge, response, c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, s)
}

func (c *call) listPasskeys([]uuid.UUID) error {
	all, err := c.OwnPasskeys(c.r.Context(), c.identity())
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, all)
}

func (c *call) renamePasskey(ids []uuid.UUID) error {
	var in struct {
		FriendlyName string `json:"friendly_name"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	renamed, err := c.RenamePasskey(c.r.Context(), c.identity(), ids[0], in.FriendlyName)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, renamed)
}

func (c *call) removePasskey(ids []uuid.UUID) error {
	if err := c.RemovePasskey(c.r.Context(), c.identity(), ids[0], c.client); err != nil {
		return err
	}

	return c.empty()
}

func (c *call) adminListPasskeys(ids []uuid.UUID) error {
	all, err := c.ListPasskeys(c.r.Context(), ids[0])
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, all)
}

func (c *call) adminDeletePasskey(ids []uuid.UUID) error {
	if _, err := c.DeletePasskey(c.r.Context(), ids[0], ids[1], c.client); err != nil {
		return err
	}

	return c.empty()
}
