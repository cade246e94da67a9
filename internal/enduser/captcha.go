package enduser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
)

const maxCaptchaToken = 16 << 10 // bytes

// CheckCaptcha verifies the token that a client has from the captcha's service. It fails with
// Invalid for none and a wrong one, and with Internal without an answer. Without a captcha it
// accepts any.
func (d *Directory) CheckCaptcha(ctx context.Context, token string, c Client) error {
	if !d.Captcha.Enabled {
		return nil
	}

	token = strings.TrimSpace(token)
	switch {
	case token == "":
		return errCaptcha("no captcha_token found")
	case len(token) > maxCaptchaToken:
		return errCaptcha("invalid-input-response")
	}

	verdict, err := d.verifyCaptcha(ctx, token, c)
	if err != nil {
		d.service.Log.Warn("captcha could not be verified", "project", d.UUID, "error", err)
		return fault.New(fault.Internal, "captcha verification process failed").WithCode("unexpected_failure").
			WithCause(err)
	}
	if !verdict.Success {
		return errCaptcha(fault.Clip(strings.Join(verdict.Codes, ", ")))
	}

	return nil
}

func errCaptcha(reason string) error {
	return fault.New(fault.Invalid, "captcha protection: request disallowed (%s)", reason).WithCode("captcha_failed")
}

// captchaVerdict is a captcha service's response.
type captchaVerdict struct {
	Success bool     `json:"success"`
	Codes   []string `json:"error-codes"`
}

func (d *Directory) verifyCaptcha(ctx context.Context, token string, c Client) (verdict captchaVerdict, err error) {
	form := url.Values{"secret": {d.Secrets[rules.SecretCaptcha]}, "response": {token}}
	if c.Address.IsValid() {
		form.Set("remoteip", c.Address.String())
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Captcha.Service(), strings.NewReader(form.Encode()))
	if err != nil {
		return verdict, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	res, err := d.service.Outbound.Do(ctx, d.Key(ctx), r)
	if err != nil {
		return verdict, err
	}
	if res.Status != http.StatusOK {
		return verdict, fmt.Errorf("status %d", res.Status)
	}

	return verdict, json.Unmarshal(res.Body, &verdict)
}
