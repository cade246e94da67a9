package account

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/ratelimit"
	"github.com/socle-dev/socle/internal/token"
)

// codeLimit limits wrong codes. Callers who reach it already know the password.
var codeLimit = ratelimit.GuessLimit{
	Network:         ratelimit.Limit{Name: "second factor network", Most: 10, Window: time.Hour},
	UnknownNetworks: ratelimit.Limit{Name: "second factor", Most: 10, Window: time.Hour},
}

// FactorState is a second factor's public state.
type FactorState struct {
	IsConfirmed   bool `json:"isConfirmed" doc:"Whether log-ins require the second factor."`
	RecoveryCodes int  `json:"recoveryCodes" doc:"Number of unused recovery codes."`
}

// GetSecondFactor returns the state of a user's second factor. It fails with NotFound without one.
func (s *Service) GetSecondFactor(ctx context.Context, user uuid.UUID) (FactorState, error) {
	f, err := s.getFactor(ctx, user)
	return FactorState{f.ConfirmedAt != nil, f.RecoveryCodes}, err
}

// NewFactor is a second factor that awaits confirmation. It is shown once.
type NewFactor struct {
	Secret string `json:"secret" doc:"The secret in base32."`
	URL    string `json:"url" doc:"otpauth:// URL, for a QR code."`
}

// CreateSecondFactor creates a second factor, which takes effect when it is confirmed. It fails
// with Unprocessable on password if that is wrong, and with Conflict if the user has a confirmed
// second factor.
func (s *Service) CreateSecondFactor(
	ctx context.Context, client Client, id uuid.UUID, password string,
) (NewFactor, error) {
	user, err := s.confirmPassword(ctx, client, id, password)
	if err != nil {
		return NewFactor{}, err
	}

	secret := token.NewTOTPSecret()
	sealed, err := token.Seal(s.factorKeyOf(user.UUID), secret)
	if err != nil {
		return NewFactor{}, err
	}

	err = s.inTx(ctx, func(tx *Service) error { return tx.insertFactor(ctx, user.UUID, sealed) })
	return NewFactor{token.TOTPText(secret), token.TOTPURL(secret, "Socle", user.Email)}, err
}

// factorKeyOf returns the key that seals a user's second factor. It differs per user, so a row
// copied to another user cannot be opened.
func (s *Service) factorKeyOf(user uuid.UUID) []byte { return token.Derive(s.FactorKey, user.String()) }

// ConfirmSecondFactor confirms a second factor by a code, notifies the user by mail, and returns
// new recovery codes. It fails with NotFound without a second factor, with Conflict if it is
// confirmed already, and with Unprocessable on code if that is wrong.
func (s *Service) ConfirmSecondFactor(
	ctx context.Context, client Client, id uuid.UUID, code string,
) (recoveryCodes []string, err error) {
	f, err := s.getFactor(ctx, id)
	if err != nil {
		return nil, err
	}

	if f.ConfirmedAt != nil {
		return nil, fault.New(fault.Conflict, "the second factor is already confirmed")
	}

	key := s.factorKeyOf(id)
	step, err := s.matchCode(ctx, client, id, key, f, code)
	if err != nil {
		return nil, err
	}

	codes, hashes := token.NewRecoveryCodes(key)
	return codes, s.inTx(ctx, func(tx *Service) error {
		if err := tx.confirmFactor(ctx, id, f.Sealed, step, hashes); err != nil {
			return err
		}
		return tx.mailFactorChange(ctx, id, "switched on")
	})
}

// DeleteSecondFactor deletes a second factor and notifies the user by mail. It fails with NotFound
// without one, and with Unprocessable on password or code if the proof is wrong. An unconfirmed
// second factor needs no code.
func (s *Service) DeleteSecondFactor(ctx context.Context, client Client, id uuid.UUID, proof Proof) error {
	user, err := s.confirmPassword(ctx, client, id, proof.Password)
	if err != nil {
		return err
	}

	spend, err := s.checkSecondFactor(ctx, client, user.UUID, proof.Code)
	if err != nil {
		return err
	}

	return s.withSecondFactor(ctx, client, spend, user.UUID, func(tx *Service) error {
		if err := tx.deleteFactor(ctx, user.UUID); err != nil {
			return err
		}
		return tx.mailFactorChange(ctx, user.UUID, "switched off")
	})
}

// ResetSecondFactor deletes the second factor and all sessions of another user on behalf of an
// administrator, and notifies the user by mail. It fails with Forbidden for the actor's own
// account, and with NotFound for an unknown user or without a second factor.
func (s *Service) ResetSecondFactor(ctx context.Context, actor Caller, id uuid.UUID) (User, error) {
	if id == actor.User {
		return User{}, fault.New(fault.Forbidden,
			"your own second factor can be deleted only with a code, or by another administrator").
			WithCode("own_account")
	}

	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (User, error) {
		user, err := tx.GetUser(ctx, id)
		if err != nil {
			return user, err
		}

		if err := tx.deleteFactor(ctx, id); err != nil {
			return user, err
		}
		if err := tx.endSessions(ctx, id, uuid.Nil); err != nil {
			return user, err
		}

		return user, tx.mailFactorChange(ctx, id, "removed by an administrator")
	})
}

func (s *Service) mailFactorChange(ctx context.Context, id uuid.UUID, change string) error {
	user, err := s.GetUser(ctx, id)
	if err != nil {
		return err
	}

	return s.mail(ctx, Mail{
		Template: "second-factor",
		To:       user.Email,
		Data:     map[string]string{"username": user.Username, "change": change},
	})
}

// matchCode returns the TOTP step of an app code. A wrong code is counted and fails with
// Unprocessable on the field code.
func (s *Service) matchCode(
	ctx context.Context, client Client, user uuid.UUID, key []byte, f factor, code string,
) (int64, error) {
	if err := s.checkCodeLimit(ctx, client, user); err != nil {
		return 0, err
	}

	secret, err := token.Open(key, f.Sealed)
	if err != nil {
		return 0, err
	}

	step, ok := token.MatchTOTP(secret, code, time.Now())
	if !ok {
		return 0, s.rejectCode(ctx, client, user)
	}

	return step, s.checkCodeLimit(ctx, client, user) // see Login
}

func (s *Service) checkCodeLimit(ctx context.Context, client Client, user uuid.UUID) error {
	return s.Attempts.CheckGuesses(ctx, codeLimit, user.String(), client.Network)
}

// rejectCode counts a wrong code and returns its failure.
func (s *Service) rejectCode(ctx context.Context, client Client, user uuid.UUID) error {
	if err := s.Attempts.CountGuess(ctx, codeLimit, user.String(), client.Network); err != nil {
		return err
	}
	return fault.OnField(fault.Unprocessable, "code", "invalid_code", "is wrong or was used before")
}

// spendCode spends a second factor's code within a transaction and reports whether it was unused.
// nil: no code is needed.
type spendCode func(ctx context.Context, tx *Service) (bool, error)

// checkSecondFactor checks the code of a user whose password was verified. It fails with
// Unprocessable on the field code, second_factor_required or invalid_code, unless the code is right
// or the user has no confirmed factor.
func (s *Service) checkSecondFactor(
	ctx context.Context, client Client, user uuid.UUID, code string,
) (spendCode, error) {
	f, err := s.getFactor(ctx, user)
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
		return func(ctx context.Context, tx *Service) (bool, error) {
			return tx.useRecoveryCode(ctx, user, token.RecoveryHash(key, code))
		}, s.checkCodeLimit(ctx, client, user)
	}

	step, err := s.matchCode(ctx, client, user, key, f, code)
	return func(ctx context.Context, tx *Service) (bool, error) { return tx.useStep(ctx, user, step) }, err
}

// withSecondFactor runs f in a transaction that first spends the code of the second factor, if one
// is needed.
func (s *Service) withSecondFactor(
	ctx context.Context, client Client, spend spendCode, user uuid.UUID, f func(tx *Service) error,
) error {
	errSpent := errors.New("code already used")
	err := s.inTx(ctx, func(tx *Service) error {
		if spend != nil {
			if first, err := spend(ctx, tx); err != nil || !first {
				return cmp.Or(err, errSpent)
			}
		}

		return f(tx)
	})
	if errors.Is(err, errSpent) {
		return s.rejectCode(ctx, client, user)
	}

	return err
}

// factor is a second factor's row.
type factor struct {
	Sealed        []byte
	ConfirmedAt   *time.Time // nil: not confirmed, so log-ins do not require it
	RecoveryCodes int        // number of unused codes
}

// getFactor returns a user's second factor, confirmed or not. It fails with NotFound without one.
func (s *Service) getFactor(ctx context.Context, user uuid.UUID) (factor, error) {
	return pg.One[factor](ctx, s.q, `
		select sealed, confirmed_at, (select count(*)::int from platform.recovery_codes c where c.user_uuid = f.user_uuid) as recovery_codes
		from platform.second_factors f where user_uuid = @user`, pgx.StrictNamedArgs{"user": user})
}

// insertFactor stores an unconfirmed second factor and replaces an earlier unconfirmed one. It
// fails with Conflict if the user has a confirmed one. Call it in a transaction.
func (s *Service) insertFactor(ctx context.Context, user uuid.UUID, sealed []byte) error {
	n, err := pg.Exec(ctx, s.q, `
		insert into platform.second_factors as f (user_uuid, sealed) values (@user, @sealed)
		on conflict (user_uuid) do update set sealed = excluded.sealed, created_at = now(), last_step = 0
		where f.confirmed_at is null`, pgx.StrictNamedArgs{"user": user, "sealed": sealed})
	if err != nil {
		return err
	}

	if n == 0 {
		return fault.New(fault.Conflict, "there already is a second factor: remove it first")
	}

	return nil
}

// confirmFactor confirms a second factor after the user has presented the code of a step. From then
// on a log-in requires the factor or one of the recovery codes with these hashes. It fails with
// Conflict if the factor was confirmed or replaced meanwhile. Call it in a transaction.
func (s *Service) confirmFactor(ctx context.Context, user uuid.UUID, sealed []byte, step int64, hashes [][]byte) error {
	n, err := pg.Exec(ctx, s.q, `
		update platform.second_factors set confirmed_at = now(), last_step = @step
		where user_uuid = @user and sealed = @sealed and confirmed_at is null`,
		pgx.StrictNamedArgs{"user": user, "sealed": sealed, "step": step})
	if err != nil {
		return err
	}

	if n == 0 {
		return fault.New(fault.Conflict, "the second factor was confirmed or replaced meanwhile")
	}

	_, err = pg.Exec(ctx, s.q,
		`insert into platform.recovery_codes (user_uuid, hash) select @user, unnest(@hashes::bytea[])`,
		pgx.StrictNamedArgs{"user": user, "hashes": hashes})
	return err
}

// useStep uses up the code of a step. It reports false if that code or a later one was used
// before, so one of several concurrent requests succeeds. Call it in the transaction of the
// protected change.
func (s *Service) useStep(ctx context.Context, user uuid.UUID, step int64) (bool, error) {
	n, err := pg.Exec(ctx, s.q, `
		update platform.second_factors set last_step = @step where user_uuid = @user and confirmed_at is not null and last_step < @step`,
		pgx.StrictNamedArgs{"user": user, "step": step})
	return n == 1, err
}

// useRecoveryCode is [Service.useStep] for a recovery code's hash.
func (s *Service) useRecoveryCode(ctx context.Context, user uuid.UUID, hash []byte) (bool, error) {
	n, err := pg.Exec(ctx, s.q, `delete from platform.recovery_codes where user_uuid = @user and hash = @hash`,
		pgx.StrictNamedArgs{"user": user, "hash": hash})
	return n == 1, err
}

// deleteFactor deletes a user's second factor and its recovery codes. It fails with NotFound
// without one. Call it in a transaction.
func (s *Service) deleteFactor(ctx context.Context, user uuid.UUID) error {
	n, err := pg.Exec(ctx, s.q, `delete from platform.second_factors where user_uuid = @user`,
		pgx.StrictNamedArgs{"user": user})
	if err != nil {
		return err
	}

	if n == 0 {
		return fault.New(fault.NotFound, "there is no second factor")
	}

	return nil
}
