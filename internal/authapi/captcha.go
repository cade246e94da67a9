package authapi

// captchaToken is the request member with a captcha's token.
type captchaToken struct {
	Security struct {
		Token string `json:"captcha_token"`
	} `json:"gotrue_meta_security"`
}

// checkCaptcha verifies a captcha's token. Project administrators need none.
func (c *call) checkCaptcha(in captchaToken) error {
	if c.caller.Role == "service_role" {
		return nil
	}
	return c.CheckCaptcha(c.r.Context(), in.Security.Token, c.client)
}
