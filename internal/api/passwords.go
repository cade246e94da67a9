package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/job"
	"socle/internal/platform"
	"socle/internal/ratelimit"
	"socle/internal/token"
)

// Limits of mails and of password resets. Requests for mails count whether the account exists or
// not.
var (
	mailNetworkLimit  = ratelimit.Limit{Name: "mail address", Most: 20, Window: time.Hour}
	resetNetworkLimit = ratelimit.Limit{Name: "reset address", Most: 30, Window: time.Hour}
	mailAccountLimit  = ratelimit.Limit{Name: "mail account", Most: 5, Window: time.Hour}
)

func (s *Server) registerPasswords() {
	open(s, forgetPassword, s.forgetPassword)
	open(s, resetPassword, s.resetPassword)
	open(s, changeEmail, s.changeEmail)
	open(s, confirmEmail, s.confirmEmail)
}

var forgetPassword = Operation{
	ID: "forgetPassword", Method: "POST", Path: "/users/password/forgot", Summary: "Request a password reset",
	Access: anonymous, Errors: []int{400, 422, 429, 500}, Success: http.StatusOK,
	Notes: "If the address belongs to a user, mails a link that works once, within an hour. The response does not " +
		"reveal whether it does.",
}

type forgetPasswordInput struct {
	Body struct {
		Email string `json:"email" maxLength:"254"`
	}
}

func (s *Server) forgetPassword(ctx context.Context, in *forgetPasswordInput) (nothing, error) {
	email, err := platform.CleanEmail(in.Body.Email)
	if err != nil {
		return nothing{}, err
	}

	if err := s.countAttempt(ctx, mailNetworkLimit, mailAccountLimit, platform.EmailKey(email)); err != nil {
		return nothing{}, err
	}

	return nothing{}, s.jobs.ResetPassword(ctx, email)
}

var resetPassword = Operation{
	ID: "resetPassword", Method: "POST", Path: "/users/password/reset", Summary: "Reset a password",
	Access: anonymous, Errors: []int{400, 422, 429, 500}, Success: http.StatusOK,
	Notes: "Ends all sessions of the user. A second factor stays unchanged. Failed log-ins from other networks do " +
		"not lock out the network of this request.",
}

type resetPasswordInput struct {
	Body struct {
		Token    string `json:"token" maxLength:"200" doc:"Token from the link in the mail."`
		Password string `json:"password"`
	}
}

func (s *Server) resetPassword(ctx context.Context, in *resetPasswordInput) (nothing, error) {
	if err := s.attempts.Count(ctx, resetNetworkLimit, networkOf(ctx)); err != nil {
		return nothing{}, err
	}

	id, user, err := s.resetTarget(ctx, in.Body.Token)
	if err != nil {
		return nothing{}, err
	}

	if err := s.passwords.Check(in.Body.Password, user.Email, user.Username); err != nil {
		return nothing{}, err
	}

	hash, err := s.passwords.Hash(ctx, in.Body.Password)
	if err != nil {
		return nothing{}, err
	}

	audit.SetActor(ctx, user.UUID)
	return nothing{}, s.platform.InTx(ctx, func(tx *platform.Store) error {
		if _, err := tx.UseLink(ctx, platform.PasswordReset, id); err != nil {
			return err
		}
		if _, err := tx.UpdateUser(ctx, user.UUID, uuid.Nil, platform.UserUpdate{PasswordHash: &hash}); err != nil {
			return err
		}
		if err := s.rememberNetwork(ctx, tx, user); err != nil {
			return err
		}

		return s.jobs.SendMail(ctx, tx, job.Mail{
			Template: "password-changed",
			To:       user.Email,
			Data:     map[string]string{"username": user.Username},
		})
	})
}

// resetTarget returns the user whose password a reset link may set. It runs before the new password
// is hashed, which is expensive.
func (s *Server) resetTarget(ctx context.Context, text string) (link uuid.UUID, user platform.User, err error) {
	id, ok := token.ParseLink(s.linkKey, platform.PasswordReset, text)
	if !ok {
		return id, user, platform.InvalidLink()
	}

	found, err := s.platform.GetLink(ctx, id)
	if fault.Is(err, fault.NotFound) || (err == nil && !found.Good(time.Now())) {
		return id, user, platform.InvalidLink()
	}
	if err != nil {
		return id, user, err
	}

	user, err = s.platform.GetUser(ctx, found.UserUUID.UUID)
	if fault.Is(err, fault.NotFound) {
		err = platform.InvalidLink()
	}

	return id, user, err
}

var changeEmail = Operation{
	ID: "changeEmail", Method: "POST", Path: "/users/me/email", Summary: "Request a change of e-mail address",
	Access: signedIn, Errors: []int{400, 401, 422, 429, 500}, Success: http.StatusOK,
	Notes: "Mails a link to the new address and a notice to the current one. The address changes when the link is " +
		"opened, within a day.",
}

type changeEmailInput struct {
	Body struct {
		Email    string `json:"email" maxLength:"254"`
		Password string `json:"password" doc:"Your password."`
	}
}

func (s *Server) changeEmail(ctx context.Context, in *changeEmailInput) (nothing, error) {
	email, err := platform.CleanEmail(in.Body.Email)
	if err != nil {
		return nothing{}, err
	}

	user, err := s.confirmPassword(ctx, in.Body.Password)
	if err != nil {
		return nothing{}, err
	}

	if err := s.countAttempt(ctx, mailNetworkLimit, mailAccountLimit, user.UUID.String()); err != nil {
		return nothing{}, err
	}

	data := map[string]string{"username": user.Username, "email": email}
	return nothing{}, s.platform.InTx(ctx, func(tx *platform.Store) error {
		link, err := tx.CreateLink(ctx, platform.NewLink{
			Purpose: platform.EmailChange,
			User:    uuid.NullUUID{UUID: user.UUID, Valid: true},
			Email:   email,
			TTL:     24 * time.Hour,
		})
		if err != nil {
			return err
		}

		if err := s.jobs.SendMail(ctx, tx, job.Mail{
			Template: "email-change",
			To:       email,
			Data:     data,
			Link:     uuid.NullUUID{UUID: link.UUID, Valid: true},
		}); err != nil {
			return err
		}

		return s.jobs.SendMail(ctx, tx, job.Mail{Template: "email-changing", To: user.Email, Data: data})
	})
}

// confirmPassword returns the calling user if password is theirs. Otherwise it fails with
// Unprocessable on the field password, and counts a failed log-in.
func (s *Server) confirmPassword(ctx context.Context, password string) (platform.User, error) {
	user, hash, err := s.platform.CredentialsByUUID(ctx, caller(ctx).User)
	if fault.Is(err, fault.NotFound) {
		return user, errSessionEnded()
	}
	if err != nil {
		return user, err
	}

	account, address := platform.EmailKey(user.Email), networkOf(ctx)
	if err := s.checkLogInLimit(ctx, address, account); err != nil {
		return user, err
	}

	ok, err := s.passwords.Verify(ctx, hash, password)
	if err != nil {
		return user, err
	}

	if !ok {
		if err := s.countFailedLogIn(ctx, account); err != nil {
			return user, err
		}
		return user, fault.OnField(fault.Unprocessable, "password", "wrong_password", "is not your password")
	}

	return user, s.checkLogInLimit(ctx, address, account) // see login
}

var confirmEmail = Operation{
	ID: "confirmEmail", Method: "POST", Path: "/users/email/confirm", Summary: "Confirm an e-mail address",
	Access: anonymous, Errors: []int{400, 409, 422, 500}, Success: http.StatusOK,
}

type confirmEmailInput struct {
	Body struct {
		Token string `json:"token" maxLength:"200" doc:"Token from the link in the mail."`
	}
}

// confirmedEmail is the new address of a user.
type confirmedEmail struct {
	Email string `json:"email"`
}

func (s *Server) confirmEmail(ctx context.Context, in *confirmEmailInput) (confirmedEmail, error) {
	id, ok := token.ParseLink(s.linkKey, platform.EmailChange, in.Body.Token)
	if !ok {
		return confirmedEmail{}, platform.InvalidLink()
	}

	var confirmed confirmedEmail
	err := s.platform.InTx(ctx, func(tx *platform.Store) error {
		link, err := tx.UseLink(ctx, platform.EmailChange, id)
		if err != nil {
			return err
		}

		audit.SetActor(ctx, link.UserUUID.UUID)

		user, err := tx.UpdateUser(ctx, link.UserUUID.UUID, uuid.Nil, platform.UserUpdate{Email: &link.Email})
		if err != nil {
			return err
		}

		confirmed.Email = user.Email
		return s.rememberNetwork(ctx, tx, user)
	})

	return confirmed, err
}
