package enduser

import "github.com/socle-dev/socle/internal/fault"

// The texts and codes are the contract's, which clients compare.

func errDatabase(what string) *fault.Error {
	return fault.New(fault.Internal, "Database error %s", what).WithCode("unexpected_failure")
}

func errInvalid(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, format, args...).WithCode("validation_failed")
}

func errCredentials() *fault.Error {
	return fault.New(fault.Invalid, "Invalid login credentials").WithCode("invalid_credentials")
}

func errEmailExists() *fault.Error {
	return fault.New(fault.Unprocessable, "A user with this email address has already been registered").
		WithCode("email_exists")
}

func errUserExists() *fault.Error {
	return fault.New(fault.Unprocessable, "User already registered").WithCode("user_already_exists")
}

func errUserNotFound() *fault.Error {
	return fault.New(fault.NotFound, "User not found").WithCode("user_not_found")
}

// errUserGone reports a valid access token whose user was deleted.
func errUserGone() *fault.Error {
	return fault.New(fault.Forbidden, "User from sub claim in JWT does not exist").WithCode("user_not_found")
}

func errSignUpDisabled() *fault.Error {
	return fault.New(fault.Unprocessable, "Signups not allowed for this instance").WithCode("signup_disabled")
}

func errNotConfirmed() *fault.Error {
	return fault.New(fault.Invalid, "Email not confirmed").WithCode("email_not_confirmed")
}

func errBanned() *fault.Error {
	return fault.New(fault.Invalid, "User is banned").WithCode("user_banned")
}

// errPhoneDisabled reports a number in a request while phone numbers are off.
func errPhoneDisabled(detail string) *fault.Error {
	return fault.New(fault.Invalid, "%s", detail).WithCode("phone_provider_disabled")
}

func errPhoneExists() *fault.Error {
	return fault.New(fault.Unprocessable, "A user with this phone number has already been registered").
		WithCode("phone_exists")
}

func errPhoneNotConfirmed() *fault.Error {
	return fault.New(fault.Invalid, "Phone not confirmed").WithCode("phone_not_confirmed")
}

func errCode() *fault.Error {
	return fault.New(fault.Forbidden, "Token has expired or is invalid").WithCode("otp_expired")
}

func errState(text string) *fault.Error {
	return fault.New(fault.Invalid, "%s", text).WithCode("bad_oauth_state")
}

func errRefreshToken(reason, code string) *fault.Error {
	return fault.New(fault.Invalid, "Invalid Refresh Token: %s", reason).WithCode(code)
}

func errFlow(detail, code string) *fault.Error {
	return fault.New(fault.NotFound, "%s", detail).WithCode(code)
}

// ErrSessionMissing reports a valid access token whose session has ended.
func ErrSessionMissing() *fault.Error {
	return fault.New(fault.Forbidden, "Session from session_id claim in JWT does not exist").
		WithCode("session_not_found")
}
