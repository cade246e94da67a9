package rules

import (
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
)

// Hooks maps names of hooks to functions of the project, pg-functions://postgres/schema/function,
// or to the URLs of endpoints, see package hook.
type Hooks map[string]string

// Names of hooks.
const (
	HookAccessToken = "custom_access_token"
	HookNewUser     = "before_user_created"
	HookCreated     = "after_user_created"
	HookPassword    = "password_verification_attempt"
	HookFactor      = "mfa_verification_attempt"
	HookMail        = "send_email"
)

// hookEvents maps names of hooks to those in the metadata of their events.
var hookEvents = map[string]string{
	HookAccessToken: "customize-access-token", HookNewUser: "before-user-created",
	HookCreated: "after-user-created", HookPassword: "password-verification", HookFactor: "mfa-verification",
	HookMail: "send-email",
}

// HookEvent returns the name of a hook in the metadata of its events.
func HookEvent(hook string) string { return hookEvents[hook] }

func (h Hooks) validate() error {
	var errs []error
	for name, address := range h {
		if hookEvents[name] == "" {
			errs = append(errs, refuse("hooks."+name, "unknown", "is no hook"))
		} else if err := hook.CheckAddress(address); err != nil {
			errs = append(errs, refuse("hooks."+name, "invalid_format", "%s", err))
		}
	}

	return fault.Join(errs...)
}
