package account

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// Limits of log-ins and of other checks of a password. Successful ones do not count. Failures from
// unknown networks lock an account for at most one window, and never for networks from which its
// user logged in before.
var (
	loginNetworkLimit = ratelimit.Limit{Name: "log-in address", Most: 20, Window: 5 * time.Minute}
	loginAccountLimit = ratelimit.GuessLimit{
		Network:         ratelimit.Limit{Name: "log-in network", Most: 10, Window: 5 * time.Minute},
		UnknownNetworks: ratelimit.Limit{Name: "log-in account", Most: 20, Window: 5 * time.Minute},
	}
)

// Credentials are a log-in's input.
type Credentials struct {
	Email, Password string
	Code            string // code of the second factor; "" if the user has none
}

// Login verifies a user's credentials and opens a session. It fails as [Service.withCredentials]
// does.
func (s *Service) Login(ctx context.Context, client Client, in Credentials) (SignedIn, error) {
	var signedIn SignedIn
	err := s.withCredentials(ctx, client, in, func(tx *Service, user User, hash string) error {
		var err error
		signedIn, err = tx.signIn(ctx, client, user, hash)
		return err
	})

	return signedIn, err
}

// withCredentials verifies the credentials of a user, and calls f with the user and the hash of
// their password in a transaction. It fails with Unauthenticated for an unknown address and a wrong
// password alike, and for a missing or wrong code of the user's second factor. It fails with
// TooMany beyond the limits.
func (s *Service) withCredentials(
	ctx context.Context, client Client, in Credentials, f func(tx *Service, user User, hash string) error,
) error {
	httpx.From(ctx).Share = logInShare(ctx, in.Email)
	if err := s.checkLoginLimit(ctx, client, in.Email); err != nil {
		return err
	}

	user, hash, err := s.credentials(ctx, in.Email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	// An unknown address has no hash; Verify takes the same time for it.
	ok, err := s.Passwords.For(logInShare(ctx, in.Email)).Verify(ctx, hash, in.Password)
	if err != nil {
		return err
	}

	if !ok || user.Status != "active" {
		if err := s.countFailedLogin(ctx, client, in.Email); err != nil {
			return err
		}

		return fault.New(fault.Unauthenticated, "the e-mail address or the password is wrong").
			WithCode("invalid_credentials")
	}

	// Checked again, for guesses sent in parallel before the first was counted: at most as many as
	// the limit get an answer.
	if err := s.checkLoginLimit(ctx, client, in.Email); err != nil {
		return err
	}

	spend, err := s.checkSecondFactor(ctx, client, user.UUID, in.Code)
	if err != nil {
		return asUnauthenticated(err)
	}

	var failure error
	err = s.withSecondFactor(ctx, client, spend, user.UUID, func(tx *Service) error {
		failure = f(tx, user, hash)
		return failure
	})
	if failure != nil {
		return failure
	}

	return asUnauthenticated(err)
}

// logInShare returns the key of a log-in in pools: the network's log-ins share a part of their own,
// by address, which requests to projects and other requests from the network don't use.
func logInShare(ctx context.Context, email string) fair.Key {
	network := httpx.Stranger(ctx)
	return fair.Key{Account: "log-ins of " + network.Account, Part: network.Part}.In(foldEmail(email))
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

// confirmPassword returns a signed-in user if password is theirs. Otherwise it fails with
// Unprocessable on the field password, and counts a failed log-in.
func (s *Service) confirmPassword(ctx context.Context, client Client, id uuid.UUID, password string) (User, error) {
	user, hash, err := s.credentialsByUUID(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return user, errSessionEnded()
	}
	if err != nil {
		return user, err
	}

	if err := s.checkLoginLimit(ctx, client, user.Email); err != nil {
		return user, err
	}

	ok, err := s.Passwords.For(fair.Key{Account: id.String()}).Verify(ctx, hash, password)
	if err != nil {
		return user, err
	}

	if !ok {
		if err := s.countFailedLogin(ctx, client, user.Email); err != nil {
			return user, err
		}
		return user, fault.OnField(fault.Unprocessable, "password", "wrong_password", "is not your password")
	}

	return user, s.checkLoginLimit(ctx, client, user.Email) // see Login
}

// checkLoginLimit fails with TooMany if the network or the account with an address has reached its
// limit of failures.
func (s *Service) checkLoginLimit(ctx context.Context, client Client, email string) error {
	if err := s.Attempts.Check(ctx, loginNetworkLimit, client.Network); err != nil {
		return err
	}
	return s.Attempts.CheckGuesses(ctx, loginAccountLimit, foldEmail(email), client.Network)
}

// countFailedLogin counts a wrong password.
func (s *Service) countFailedLogin(ctx context.Context, client Client, email string) error {
	if err := s.Attempts.Count(ctx, loginNetworkLimit, client.Network); err != nil {
		return err
	}
	return s.Attempts.CountGuess(ctx, loginAccountLimit, foldEmail(email), client.Network)
}

// rememberNetwork records that a user proved their identity from the client's network.
func (s *Service) rememberNetwork(ctx context.Context, client Client, user User) error {
	// Passwords count under the address, codes under the UUID.
	return s.Attempts.RecordNetwork(ctx, client.Network, foldEmail(user.Email), user.UUID.String())
}
