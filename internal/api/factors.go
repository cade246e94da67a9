package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/job"
	"socle/internal/platform"
	"socle/internal/ratelimit"
	"socle/internal/token"
)

// codeLimit limits wrong codes. Callers who reach it already know the password.
var codeLimit = ratelimit.GuessLimit{
	Network:         ratelimit.Limit{Name: "second factor network", Most: 10, Window: time.Hour},
	UnknownNetworks: ratelimit.Limit{Name: "second factor", Most: 10, Window: time.Hour},
}

const recoveryCodeCount = 10

func (s *Server) registerFactors() {
	open(s, getSecondFactor, s.getSecondFactor)
	open(s, createSecondFactor, s.createSecondFactor)
	open(s, confirmSecondFactor, s.confirmSecondFactor)
	open(s, deleteSecondFactor, s.deleteSecondFactor)
}

var getSecondFactor = Operation{
	ID: "getSecondFactor", Method: "GET", Path: "/users/me/totp", Summary: "Get your second factor",
	Access: signedIn, Errors: []int{401, 404, 500},
}

// factorState is the public state of a second factor.
type factorState struct {
	IsConfirmed   bool `json:"isConfirmed" doc:"Whether log-ins require the second factor."`
	RecoveryCodes int  `json:"recoveryCodes" doc:"Number of unused recovery codes."`
}

func (s *Server) getSecondFactor(ctx context.Context, _ *struct{}) (factorState, error) {
	f, err := s.platform.GetFactor(ctx, caller(ctx).User)
	return factorState{f.ConfirmedAt != nil, f.RecoveryCodes}, err
}

var createSecondFactor = Operation{
	ID: "createSecondFactor", Method: "POST", Path: "/users/me/totp", Summary: "Create a second factor",
	Access: signedIn, Errors: []int{400, 401, 409, 422, 429, 500},
	Notes: "Add the secret to an authenticator app, by hand or as a QR code of `url`. The second factor takes " +
		"effect after confirmSecondFactor.",
}

type createSecondFactorInput struct {
	Body struct {
		Password string `json:"password" doc:"Your password."`
	}
}

// newFactor is a second factor that awaits confirmation. It is shown once.
type newFactor struct {
	Secret string `json:"secret" doc:"The secret in base32."`
	URL    string `json:"url" doc:"otpauth:// URL, for a QR code."`
}

func (s *Server) createSecondFactor(
	ctx context.Context, in *createSecondFactorInput,
) (Answer[newFactor, struct{}], error) {
	user, err := s.confirmPassword(ctx, in.Body.Password)
	if err != nil {
		return Answer[newFactor, struct{}]{}, err
	}

	secret := token.NewTOTPSecret()
	sealed, err := token.Seal(s.factorKeyOf(user.UUID), secret)
	if err != nil {
		return Answer[newFactor, struct{}]{}, err
	}

	err = s.platform.InTx(ctx, func(tx *platform.Store) error { return tx.CreateFactor(ctx, user.UUID, sealed) })
	return Answer[newFactor, struct{}]{Content: newFactor{token.TOTPText(secret),
		token.TOTPURL(secret, "Socle", user.Email)},
		Header: http.Header{"Cache-Control": {"no-store"}}}, err
}

// factorKeyOf returns the key that seals a user's second factor. It differs per user, so a row
// copied to another user cannot be opened.
func (s *Server) factorKeyOf(user uuid.UUID) []byte { return token.Derive(s.factorKey, user.String()) }

var confirmSecondFactor = Operation{
	ID: "confirmSecondFactor", Method: "POST", Path: "/users/me/totp/confirm", Summary: "Confirm your second factor",
	Access: signedIn, Errors: []int{400, 401, 404, 409, 422, 429, 500},
	Success: http.StatusOK,
	Notes: "From now on, log-ins require a `code`: from the app, or one of the recovery codes. The recovery codes " +
		"are shown only in this response; each works once.",
}

type confirmSecondFactorInput struct {
	Body struct {
		Code string `json:"code" maxLength:"64" doc:"Six digits from the app."`
	}
}

// recoveryList is shown once.
type recoveryList struct {
	RecoveryCodes []string `json:"recoveryCodes"`
}

func (s *Server) confirmSecondFactor(
	ctx context.Context, in *confirmSecondFactorInput,
) (Answer[recoveryList, struct{}], error) {
	var none Answer[recoveryList, struct{}]
	id := caller(ctx).User
	f, err := s.platform.GetFactor(ctx, id)
	if err != nil {
		return none, err
	}

	if f.ConfirmedAt != nil {
		return none, fault.New(fault.Conflict, "the second factor is already confirmed")
	}

	key := s.factorKeyOf(id)
	step, err := s.matchCode(ctx, id, key, f, in.Body.Code)
	if err != nil {
		return none, err
	}

	codes, hashes := token.NewRecoveryCodes(recoveryCodeCount), make([][]byte, recoveryCodeCount)
	for i, c := range codes {
		hashes[i] = token.RecoveryHash(key, c)
	}

	err = s.platform.InTx(ctx, func(tx *platform.Store) error {
		if err := tx.ConfirmFactor(ctx, id, f.Sealed, step, hashes); err != nil {
			return err
		}
		return s.mailFactorChange(ctx, tx, id, "switched on")
	})
	return Answer[recoveryList, struct{}]{
		Content: recoveryList{codes}, Header: http.Header{"Cache-Control": {"no-store"}},
	}, err
}

func (s *Server) mailFactorChange(ctx context.Context, tx *platform.Store, id uuid.UUID, change string) error {
	user, err := tx.GetUser(ctx, id)
	if err != nil {
		return err
	}

	return s.jobs.SendMail(ctx, tx, job.Mail{
		Template: "second-factor",
		To:       user.Email,
		Data:     map[string]string{"username": user.Username, "change": change},
	})
}

// matchCode returns the TOTP step of an app code. A wrong code is counted and fails with
// Unprocessable on the field code.
func (s *Server) matchCode(
	ctx context.Context, user uuid.UUID, key []byte, f platform.Factor, code string,
) (int64, error) {
	if err := s.checkCodeLimit(ctx, user); err != nil {
		return 0, err
	}

	secret, err := token.Open(key, f.Sealed)
	if err != nil {
		return 0, err
	}

	step, ok := token.MatchTOTP(secret, code, time.Now())
	if !ok {
		return 0, s.rejectCode(ctx, user)
	}

	return step, s.checkCodeLimit(ctx, user) // see login
}

func (s *Server) checkCodeLimit(ctx context.Context, user uuid.UUID) error {
	return s.attempts.CheckGuesses(ctx, codeLimit, user.String(), networkOf(ctx))
}

// rejectCode counts a wrong code and returns its failure.
func (s *Server) rejectCode(ctx context.Context, user uuid.UUID) error {
	if err := s.attempts.CountGuess(ctx, codeLimit, user.String(), networkOf(ctx)); err != nil {
		return err
	}

	return fault.OnField(fault.Unprocessable, "code", "invalid_code", "is wrong or was used before")
}

// spendCode spends the code of a second factor within a transaction and reports whether it was
// unused. nil: no code is needed.
type spendCode func(ctx context.Context, tx *platform.Store) (bool, error)

// checkSecondFactor checks the code of a user whose password was verified. It fails with
// Unprocessable on the field code, second_factor_required or invalid_code, unless the code is right
// or the user has no confirmed factor.
func (s *Server) checkSecondFactor(ctx context.Context, user uuid.UUID, code string) (spendCode, error) {
	f, err := s.platform.GetFactor(ctx, user)
	if fault.Is(err, fault.NotFound) || (err == nil && f.ConfirmedAt == nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	if code == "" {
		return nil, fault.OnField(fault.Unprocessable, "code", "second_factor_required",
			"is required: six digits from the authenticator app, or a recovery code")
	}

	key := s.factorKeyOf(user)
	if len(code) > 6 {
		return func(ctx context.Context, tx *platform.Store) (bool, error) {
			return tx.SpendRecoveryCode(ctx, user, token.RecoveryHash(key, code))
		}, s.checkCodeLimit(ctx, user)
	}

	step, err := s.matchCode(ctx, user, key, f, code)
	return func(ctx context.Context, tx *platform.Store) (bool, error) { return tx.UseStep(ctx, user, step) }, err
}

// withSecondFactor runs f in a transaction that first spends the code of the second factor, if one
// is needed.
func (s *Server) withSecondFactor(
	ctx context.Context, spend spendCode, user uuid.UUID, f func(tx *platform.Store) error,
) error {
	errSpent := errors.New("code already used")
	err := s.platform.InTx(ctx, func(tx *platform.Store) error {
		if spend != nil {
			if first, err := spend(ctx, tx); err != nil || !first {
				return cmp.Or(err, errSpent)
			}
		}

		return f(tx)
	})
	if errors.Is(err, errSpent) {
		return s.rejectCode(ctx, user)
	}

	return err
}

var deleteSecondFactor = Operation{
	ID: "deleteSecondFactor", Method: "DELETE", Path: "/users/me/totp", Summary: "Delete your second factor",
	Access: signedIn, Errors: []int{400, 401, 404, 422, 429, 500},
	Notes: "`code` is a code from the app or a recovery code. An unconfirmed second factor needs no code.",
}

// proof confirms an irreversible change of the user's own account.
type proof struct {
	Password string `json:"password" doc:"Your password."`
	Code     string `json:"code,omitempty" maxLength:"64" doc:"Code from the app or a recovery code, if you have a second factor."`
}

type deleteSecondFactorInput struct{ Body proof }

func (s *Server) deleteSecondFactor(ctx context.Context, in *deleteSecondFactorInput) (nothing, error) {
	user, err := s.confirmPassword(ctx, in.Body.Password)
	if err != nil {
		return nothing{}, err
	}

	spend, err := s.checkSecondFactor(ctx, user.UUID, in.Body.Code)
	if err != nil {
		return nothing{}, err
	}

	return nothing{}, s.withSecondFactor(ctx, spend, user.UUID, func(tx *platform.Store) error {
		if err := tx.DeleteFactor(ctx, user.UUID); err != nil {
			return err
		}
		return s.mailFactorChange(ctx, tx, user.UUID, "switched off")
	})
}
