package rules

import (
	"net/url"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
)

// OAuthServer is the setting of the project's own OAuth 2.1 server, which package oauth is.
type OAuthServer struct {
	Enabled                  bool   `json:"enabled,omitempty"`
	AllowDynamicRegistration bool   `json:"allow_dynamic_registration,omitempty" doc:"Anyone may register a client."`
	AuthorizationPath        string `json:"authorization_path,omitempty" maxLength:"200" doc:"Path of the application's consent page below site_url. Empty: a page of this server."`
}

func (s OAuthServer) validate(captcha bool) error {
	const field = "oauth_server.authorization_path"
	var errs []error
	if path := s.AuthorizationPath; path != "" && !isPath(path) {
		errs = append(errs, refuse(field, "invalid_format", "must be a path, such as /oauth/consent"))
	}
	if s.Enabled && s.AuthorizationPath == "" && captcha {
		errs = append(errs, refuse(field, "required",
			"is necessary with a captcha, which this server's page has not"))
	}

	return fault.Join(errs...)
}

// isPath reports whether a text is a path of a URL without query and fragment.
func isPath(text string) bool {
	u, err := url.Parse(text)
	return err == nil && strings.HasPrefix(text, "/") && u.Host == "" && u.Scheme == "" &&
		!strings.ContainsAny(text, "?#\\ ") && text == u.EscapedPath()
}
