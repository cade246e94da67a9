package enduser

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/hook"
)

// claims are an access token's claims.
type claims struct {
	Issuer       string          `json:"iss"`
	Subject      uuid.UUID       `json:"sub"`
	Audience     string          `json:"aud"`
	ExpiresAt    int64           `json:"exp"`
	IssuedAt     int64           `json:"iat"`
	Email        string          `json:"email"`
	Phone        string          `json:"phone"`
	AppMetadata  json.RawMessage `json:"app_metadata"`
	UserMetadata json.RawMessage `json:"user_metadata"`
	Role         string          `json:"role"`
	AAL          string          `json:"aal"`
	AMR          []amr           `json:"amr"`
	SessionID    uuid.UUID       `json:"session_id"`
	IsAnonymous  bool            `json:"is_anonymous"`
	ClientID     string          `json:"client_id,omitempty"` // OAuth client; "": the application
}

// amr is an authentication method in an access token.
type amr struct {
	Method    string `json:"method"`
	Timestamp int64  `json:"timestamp"`
}

// tokenEvent is the event for the hook custom_access_token.
type tokenEvent struct {
	Metadata             hookMetadata    `json:"metadata"`
	UserID               uuid.UUID       `json:"user_id"`
	Claims               json.RawMessage `json:"claims"`
	AuthenticationMethod string          `json:"authentication_method"`
}

// customClaims returns an access token's claims as a hook has changed them, with their expiry.
// Without a hook they are own. method is this authentication's.
func (d *Directory) customClaims(
	ctx context.Context, own claims, method string, c Client,
) (body []byte, expires int64, err error) {
	if body, err = json.Marshal(own); err != nil || d.Hooks[rules.HookAccessToken] == "" {
		return body, own.ExpiresAt, err
	}

	reply, err := d.ask(ctx, rules.HookAccessToken, tokenEvent{Metadata: newHookMetadata(rules.HookAccessToken, c),
		UserID: own.Subject, Claims: body, AuthenticationMethod: method})
	if err != nil {
		return nil, 0, err
	}

	if expires, err = checkClaims(own, reply.Claims); err != nil {
		return nil, 0, err
	}

	body, err = json.Marshal(reply.Claims)
	return body, expires, err
}

// requiredClaims are the claims that a hook must not remove, each with an example of its type.
var requiredClaims = map[string]any{
	"aud": nil, "exp": 0.0, "iat": 0.0, "sub": "", "email": "", "phone": "", "role": "", "aal": "", "session_id": "",
	"is_anonymous": false,
}

// optionalClaims are the other typed claims.
var optionalClaims = map[string]any{
	"iss": "", "jti": "", "client_id": "", "nbf": 0.0, "amr": []any{}, "app_metadata": map[string]any{},
	"user_metadata": map[string]any{},
}

// checkClaims returns the expiry in a hook's claims. It fails if a required one is absent, if one
// has another type, and if the token would name another user or session, outlive the settings or
// have the role service_role.
func checkClaims(own claims, got map[string]json.RawMessage) (expires int64, err error) {
	if got == nil {
		return 0, hook.Failure("unexpected_failure", "output claims field is missing")
	}

	refuse := func(name, rule string) (int64, error) {
		return 0, hook.Failure("unexpected_failure", "output claims do not conform to the expected schema: %s %s", name, rule)
	}

	values := map[string]any{}
	for name, text := range got {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return refuse(name, "is no JSON")
		}
		values[name] = value
	}

	for name, like := range requiredClaims {
		if value, ok := values[name]; !ok {
			return refuse(name, "is required")
		} else if like != nil && fmt.Sprintf("%T", value) != fmt.Sprintf("%T", like) {
			return refuse(name, "has another type")
		}
	}
	for name, like := range optionalClaims {
		if value, ok := values[name]; ok && fmt.Sprintf("%T", value) != fmt.Sprintf("%T", like) {
			return refuse(name, "has another type")
		}
	}

	switch values["aud"].(type) {
	case string, []any:
	default:
		return refuse("aud", "has another type")
	}

	end, err := strconv.ParseInt(string(got["exp"]), 10, 64)
	switch {
	case err != nil || end > own.ExpiresAt || end < own.IssuedAt:
		return refuse("exp", "must not be later than before")
	case values["sub"] != own.Subject.String():
		return refuse("sub", "must stay as it was")
	case values["session_id"] != own.SessionID.String():
		return refuse("session_id", "must stay as it was")
	case own.ClientID != "" && values["client_id"] != own.ClientID:
		return refuse("client_id", "must stay as it was")
	case values["role"] == "service_role" && own.Role != "service_role":
		return refuse("role", "must not become service_role")
	}

	return end, nil
}
