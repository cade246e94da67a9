package api

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/httpx"
	"socle/internal/job"
	"socle/internal/platform"
	"socle/internal/ratelimit"
)

var errPanic = errors.New("panic")

// Limits of sign-ups and log-ins. Successful log-ins do not count. Failures from unknown networks
// lock an account for at most one window, and never for networks from which its user logged in
// before.
var (
	signUpNetworkLimit = ratelimit.Limit{Name: "sign-up address", Most: 60, Window: time.Minute}
	signUpAccountLimit = ratelimit.Limit{Name: "sign-up account", Most: 30, Window: 10 * time.Minute}
	logInNetworkLimit  = ratelimit.Limit{Name: "log-in address", Most: 20, Window: 5 * time.Minute}
	logInAccountLimit  = ratelimit.GuessLimit{
		Network:         ratelimit.Limit{Name: "log-in network", Most: 10, Window: 5 * time.Minute},
		UnknownNetworks: ratelimit.Limit{Name: "log-in account", Most: 20, Window: 5 * time.Minute},
	}
)

func (s *Server) registerUsers() {
	open(s, createUser, s.createUser)
	open(s, login, s.login)
	openChecked(s, updateUser, s.updateUser, s.mayUpdateUser)
	open(s, getAccount, s.getAccount)
}

var createUser = Operation{
	ID: "createUser", Method: "POST", Path: "/users", Summary: "Create a user",
	Access: optionalUser, Errors: []int{400, 429, 500},
	Notes: "Creates a personal organization for the user and signs the user in. The first user of an instance " +
		"becomes its administrator if the request comes directly from the machine that runs the server, or carries " +
		"the set-up token that the server printed. If sign-up is closed, only that user, invited users, and users " +
		"created by an administrator with a bearer token are accepted.",
}

type createUserInput struct {
	Body struct {
		Username   string `json:"username" doc:"3 to 100 letters, digits, _ or -."`
		Email      string `json:"email" maxLength:"254"`
		Password   string `json:"password"`
		Bio        string `json:"bio,omitempty" maxLength:"500"`
		SetupToken string `json:"setup_token,omitempty" maxLength:"100"`

		InvitationToken string `json:"invitation_token,omitempty" maxLength:"200" doc:"Token from the link in an invitation to this address."`
	}
}

func (s *Server) createUser(ctx context.Context, in *createUserInput) (signedInUser, error) {
	claim := s.mayClaimInstance(ctx, in.Body.SetupToken)

	invitation, err := s.invitationLink(ctx, in.Body.InvitationToken, in.Body.Email)
	if err != nil {
		return signedInUser{}, err
	}

	if err := s.checkSignUpOpen(ctx, claim, invitation); err != nil {
		return signedInUser{}, err
	}
	if err := s.countAttempt(ctx, signUpNetworkLimit, signUpAccountLimit,
		platform.EmailKey(in.Body.Email)); err != nil {
		return signedInUser{}, err
	}

	username, usernameErr := platform.CleanUsername(in.Body.Username)

	email, emailErr := platform.CleanEmail(in.Body.Email)
	if err := joinFaults(usernameErr, emailErr, s.passwords.Check(in.Body.Password, email, username)); err != nil {
		return signedInUser{}, err
	}

	hash, err := s.passwords.Hash(ctx, in.Body.Password)
	if err != nil {
		return signedInUser{}, err
	}

	var answer signedInUser
	err = s.platform.InTx(ctx, func(tx *platform.Store) error {
		user, err := tx.CreateUser(ctx, platform.NewUser{Username: username, Email: email, Bio: in.Body.Bio,
			PasswordHash: hash, Claim: claim})
		if err != nil {
			return err
		}

		if invitation != uuid.Nil {
			if _, err := tx.AcceptInvitation(ctx, invitation, user.UUID); err != nil {
				return badInvitation(err)
			}
		}

		answer, err = s.signIn(ctx, tx, user, hash)
		return err
	})

	return answer, err
}

// checkSignUpOpen fails with Invalid, the only refusal that the operation declares, if sign-up is
// closed to the caller.
func (s *Server) checkSignUpOpen(ctx context.Context, claim bool, invitation uuid.UUID) error {
	if invitation != uuid.Nil || caller(ctx).Administrator {
		return nil
	}

	settings, err := s.platform.Settings(ctx)
	if err != nil || settings.SignUp {
		return err
	}

	closed := fault.New(fault.Invalid, "sign-up is closed on this server").WithCode("sign_up_closed")
	if !claim {
		return closed
	}

	claimed, err := s.platform.Claimed(ctx)
	if err == nil && claimed {
		return closed
	}

	return err
}

// mayClaimInstance reports whether a request may create the administrator of an instance without
// users.
func (s *Server) mayClaimInstance(ctx context.Context, setupToken string) bool {
	request := httpx.From(ctx)
	return (request.Direct && request.Client.IsLoopback()) ||
		subtle.ConstantTimeCompare([]byte(setupToken), []byte(s.setupToken)) == 1
}

var login = Operation{
	ID: "login", Method: "POST", Path: "/users/login", Summary: "Log in", Access: anonymous,
	Errors: []int{400, 401, 429, 500}, Success: http.StatusOK,
	Notes: "The access token is in the metadata and in the Authorization header of the response. If the user has a " +
		"second factor, the correct password without `code` fails with 401, `second_factor_required`.",
}

type loginInput struct {
	Body struct {
		Email    string `json:"email"`
		Password string `json:"password"`
		Code     string `json:"code,omitempty" maxLength:"64" doc:"Code of the user's second factor, if any: six digits from the app, or a recovery code."`
	}
}

func (s *Server) login(ctx context.Context, in *loginInput) (signedInUser, error) {
	account, address := platform.EmailKey(in.Body.Email), networkOf(ctx)
	if err := s.checkLogInLimit(ctx, address, account); err != nil {
		return signedInUser{}, err
	}

	user, hash, err := s.platform.Credentials(ctx, in.Body.Email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return signedInUser{}, err
	}

	// An unknown address has no hash; Verify takes the same time for it.
	ok, err := s.passwords.Verify(ctx, hash, in.Body.Password)
	if err != nil {
		return signedInUser{}, err
	}

	if !ok || user.Status != "active" {
		if err := s.countFailedLogIn(ctx, account); err != nil {
			return signedInUser{}, err
		}

		return signedInUser{}, fault.New(fault.Unauthenticated, "the e-mail address or the password is wrong").
			WithCode("invalid_credentials")
	}

	// Checked again, for guesses sent in parallel before the first was counted: at most as many as
	// the limit get an answer.
	if err := s.checkLogInLimit(ctx, address, account); err != nil {
		return signedInUser{}, err
	}

	spend, err := s.checkSecondFactor(ctx, user.UUID, in.Body.Code)
	if err != nil {
		return signedInUser{}, asUnauthenticated(err)
	}

	var answer signedInUser
	err = s.withSecondFactor(ctx, spend, user.UUID, func(tx *platform.Store) error {
		var err error
		answer, err = s.signIn(ctx, tx, user, hash)
		return err
	})

	return answer, asUnauthenticated(err)
}

// asUnauthenticated converts an invalid code to Unauthenticated, the failure of a log-in.
func asUnauthenticated(err error) error {
	if !fault.Is(err, fault.Unprocessable) {
		return err
	}

	e := *fault.Of(err)
	e.Kind = fault.Unauthenticated

	return &e
}

// checkLogInLimit fails with TooMany if the network or the account has reached its limit of
// failures.
func (s *Server) checkLogInLimit(ctx context.Context, address, account string) error {
	if err := s.attempts.Check(ctx, logInNetworkLimit, address); err != nil {
		return err
	}

	return s.attempts.CheckGuesses(ctx, logInAccountLimit, account, address)
}

// countFailedLogIn counts a wrong password.
func (s *Server) countFailedLogIn(ctx context.Context, account string) error {
	if err := s.attempts.Count(ctx, logInNetworkLimit, networkOf(ctx)); err != nil {
		return err
	}
	return s.attempts.CountGuess(ctx, logInAccountLimit, account, networkOf(ctx))
}

// networkOf returns the key of the client's network for rate limits.
func networkOf(ctx context.Context) string { return httpx.Network(httpx.From(ctx).Client) }

// rememberNetwork records that a user proved their identity from the client's network.
func (s *Server) rememberNetwork(ctx context.Context, store *platform.Store, user platform.User) error {
	// Passwords count under the address, codes under the UUID.
	for _, account := range []string{platform.EmailKey(user.Email), user.UUID.String()} {
		if err := s.attempts.In(store.DB().Querier()).RecordNetwork(ctx, account, networkOf(ctx)); err != nil {
			return err
		}
	}

	return nil
}

var updateUser = Operation{
	ID: "updateUser", Method: "PUT", Path: "/users/{userUUID}", Summary: "Update a user",
	Access: signedIn, Errors: specifiedBodyErrors,
	Notes: "Users can update themselves; administrators can update anyone. Omitted members stay unchanged. A new " +
		"password ends all other sessions of the user.",
}

type updateUserInput struct {
	UUID uuid.UUID `path:"userUUID" format:"uuid"`
	Body struct {
		Username *string `json:"username,omitempty" doc:"3 to 100 letters, digits, _ or -."`
		Email    *string `json:"email,omitempty" maxLength:"254"`
		Password *string `json:"password,omitempty"`
		Bio      *string `json:"bio,omitempty" maxLength:"500"`
	}
}

// mayUpdateUser returns the same failure for another user and for an unknown one.
func (s *Server) mayUpdateUser(ctx context.Context, in *updateUserInput) error {
	c := caller(ctx)
	if c.User == in.UUID {
		return nil
	}

	other := fault.New(fault.Unauthenticated, "you can update only your own user").WithCode("not_yourself")
	if !c.Administrator {
		return other
	}

	_, err := s.platform.GetUser(ctx, in.UUID)
	if fault.Is(err, fault.NotFound) {
		return other
	}

	return err
}

func (s *Server) updateUser(ctx context.Context, in *updateUserInput) (platform.User, error) {
	if err := s.mayUpdateUser(ctx, in); err != nil {
		return platform.User{}, err
	}

	b := in.Body
	if b.Username == nil && b.Email == nil && b.Password == nil && b.Bio == nil {
		return platform.User{}, fault.NothingToChange()
	}

	cleaned, err := s.platform.GetUser(ctx, in.UUID)
	if err != nil {
		return platform.User{}, err
	}

	previous, update := cleaned, platform.UserUpdate{Bio: b.Bio}
	var errs []error
	if b.Username != nil {
		name, err := platform.CleanUsername(*b.Username)
		update.Username, errs = &name, append(errs, err)
		cleaned.Username = name
	}

	if b.Email != nil {
		email, err := platform.CleanEmail(*b.Email)
		update.Email, errs = &email, append(errs, err)
		cleaned.Email = email
	}

	if b.Password != nil {
		errs = append(errs, s.passwords.Check(*b.Password, cleaned.Email, cleaned.Username))
	}

	if err := joinFaults(errs...); err != nil {
		return platform.User{}, err
	}

	if b.Password != nil {
		hash, err := s.passwords.Hash(ctx, *b.Password)
		if err != nil {
			return platform.User{}, err
		}

		update.PasswordHash = &hash
	}

	return s.saveUser(ctx, previous, update)
}

// saveUser changes a user, and mails a notice of a new password or address to the previous address.
func (s *Server) saveUser(
	ctx context.Context, previous platform.User, update platform.UserUpdate,
) (platform.User, error) {
	var user platform.User
	err := s.platform.InTx(ctx, func(tx *platform.Store) error {
		var err error
		if user, err = tx.UpdateUser(ctx, previous.UUID, caller(ctx).Session, update); err != nil {
			return err
		}

		data := map[string]string{"username": user.Username, "email": user.Email}
		if user.Email != previous.Email {
			err = s.jobs.SendMail(ctx, tx, job.Mail{Template: "email-changed", To: previous.Email, Data: data})
		}
		if err == nil && update.PasswordHash != nil {
			err = s.jobs.SendMail(ctx, tx, job.Mail{Template: "password-changed", To: previous.Email, Data: data})
		}

		return err
	})

	return user, err
}

var getAccount = Operation{
	ID: "getAccount", Method: "GET", Path: "/users/me", Summary: "Get your account",
	Access: signedInOrToken, Errors: []int{401, 500},
}

func (s *Server) getAccount(ctx context.Context, _ *struct{}) (platform.User, error) {
	return s.currentUser(ctx, caller(ctx).User)
}

// currentUser returns the calling user, or Unauthenticated if the user was deleted since.
func (s *Server) currentUser(ctx context.Context, id uuid.UUID) (platform.User, error) {
	user, err := s.platform.GetUser(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = errSessionEnded()
	}

	return user, err
}

// errSessionEnded returns the failure of a request whose session has ended meanwhile.
func errSessionEnded() error {
	return fault.New(fault.Unauthenticated, "the session has ended").WithCode("invalid_token")
}

// joinFaults merges several errors on fields to one. An error of any other kind takes precedence.
func joinFaults(errs ...error) error {
	var all *fault.Error
	for _, err := range errs {
		if err == nil {
			continue
		}

		e := fault.Of(err)
		if e.Kind != fault.Unprocessable {
			return err
		}

		if all == nil {
			copied := *e
			all = &copied
			continue
		}

		all.Fields = append(all.Fields, e.Fields...)
	}

	if all == nil {
		return nil
	}

	return all
}
