package authapi

// captchaToken is the member of a request with the token of a captcha.
type captchaToken struct {
	Security struct {
		Token string `json:"captcha_token"`
	} `json:"gotrue_meta_security"`
}

// checkCaptcha verifies the token of a captcha. Administrators of the project need none.
func (c *call) checkCaptcha(in captchaToken) error {
	if c.caller.Role == "service_role" {
		return nil
	}
	return c.CheckCaptcha(c.r.Context(), in.Security.Token, c.client)
}
