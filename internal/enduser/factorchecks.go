package enduser

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// VerifyFactor checks a factor's code. The session reaches the second level, and other sessions
// without it end when the factor is verified first.
func (d *Directory) VerifyFactor(
	ctx context.Context, who Identity, factor, challenge uuid.UUID, code string, c Client,
) (Session, error) {
	return d.verifyFactor(ctx, who, factor, challenge, c,
		func(_ context.Context, _ pgx.Tx, f factorRow) (int64, error) { return d.checkCode(f, challenge, code) })
}

// verifyFactor checks a factor by a function, which returns the code's time step.
func (d *Directory) verifyFactor(
	ctx context.Context, who Identity, factor, challenge uuid.UUID, c Client,
	check func(context.Context, pgx.Tx, factorRow) (int64, error),
) (Session, error) {
	// Right codes count too: wrong ones are counted before concurrent requests compare theirs.
	if err := d.attempts.Count(ctx, rules.FactorLimit, who.User.String()); err != nil {
		return Session{}, asRequestLimit(err)
	}

	var o unsignedSession
	refusal := func(reply hook.Reply) error { return d.refuseFactor(ctx, who.User, reply, c) }
	verify := func(ctx context.Context, tx pgx.Tx, consent func(event func() any) error) error {
		// One verification per user at a time, since it deletes other factors.
		if err := lockUser(ctx, tx, who.User); err != nil {
			return err
		}

		u, err := d.authenticate(ctx, tx, who)
		if err != nil {
			return err
		}

		f, err := findFactor(ctx, tx, u.ID, factor)
		if err != nil {
			return err
		}
		if err := requireFactorLevel(u, f.Status); err != nil {
			return err
		}

		if err := spendChallenge(ctx, tx, factor, challenge); err != nil {
			return err
		}

		step, wrong := check(ctx, tx, f)
		if wrong != nil && !fault.Is(wrong, fault.Unprocessable) {
			return wrong
		}

		if err := consent(func() any {
			return attemptEvent{Metadata: newHookMetadata(rules.HookFactor, c), UserID: u.ID, FactorID: &f.ID,
				FactorType: f.FactorType, Valid: wrong == nil}
		}); err != nil {
			return err
		}
		if wrong != nil {
			return wrong // the challenge stays open
		}

		if err := d.recordFactor(ctx, tx, u.User, who, f, step, c); err != nil {
			return err
		}

		o, err = d.raiseLevel(ctx, tx, u.ID, who, someUUID(f.ID), factorMethods[f.FactorType], c)
		return err
	}
	if err := d.txAsking(ctx, "verifying factor", rules.HookFactor, refusal, verify); err != nil {
		return Session{}, err
	}

	return d.signRaised(ctx, o)
}

// spendChallenge marks a factor's challenge as used. It fails with Unprocessable for a used or
// expired one, and for another factor's.
func spendChallenge(ctx context.Context, tx pgx.Tx, factor, challenge uuid.UUID) error {
	n, err := pg.Exec(ctx, tx, `
		update auth.mfa_challenges set verified_at = now()
		where id = @id and factor_id = @factor and verified_at is null and created_at > now() - @age::interval`,
		pgx.StrictNamedArgs{"id": challenge, "factor": factor, "age": challengeTTL})
	if err == nil && n == 0 {
		err = fault.New(fault.Unprocessable, "MFA challenge has expired, verify against another challenge or create a new challenge.").
			WithCode("mfa_challenge_expired")
	}

	return err
}

// signRaised signs the tokens for a session that has reached the second level.
func (d *Directory) signRaised(ctx context.Context, o unsignedSession) (Session, error) {
	s, err := d.sign(ctx, o)
	if err != nil {
		// The client has the previous refresh token: it stays the valid one.
		_, failure := pg.Exec(context.WithoutCancel(ctx), d.Rows(), `
			update auth.sessions set refresh_token_counter = refresh_token_counter - 1
			where id = @id and refresh_token_counter = @counter`,
			pgx.StrictNamedArgs{"id": o.ID, "counter": o.RefreshTokenCounter})
		err = errors.Join(err, failure)
	}

	return s, err
}

// checkCode fails with Unprocessable unless a factor's code is right and unused. It returns the
// time step if the code is time-based.
func (d *Directory) checkCode(f factorRow, challenge uuid.UUID, code string) (int64, error) {
	switch f.FactorType {
	case factorWebAuthn:
		return 0, errInvalid("the factor takes the response of an authenticator")
	case factorPhone:
		if !d.isCode(f.Phone, challenge, code) {
			return 0, fault.New(fault.Unprocessable, "Invalid MFA Phone code entered").
				WithCode("mfa_verification_failed")
		}
		return f.LastStep, nil
	}

	step, ok, err := d.matchCode(f, code)
	if err == nil && (!ok || step <= f.LastStep) {
		err = fault.New(fault.Unprocessable, "Invalid TOTP code entered").WithCode("mfa_verification_failed")
	}

	return step, err
}

// matchCode returns a code's time step.
func (d *Directory) matchCode(f factorRow, code string) (step int64, ok bool, err error) {
	ciphertext, err := base64.StdEncoding.DecodeString(f.Secret)
	if err != nil {
		return 0, false, err
	}

	secret, err := token.Open(d.keys.factorKey, ciphertext)
	if err != nil {
		return 0, false, err
	}

	step, ok = token.MatchTOTP(secret, code, time.Now())
	return step, ok, nil
}

// refuseFactor fails if a hook refuses a second factor, and ends the user's sessions.
func (d *Directory) refuseFactor(ctx context.Context, user uuid.UUID, reply hook.Reply, c Client) error {
	message, rejected := reply.Rejects("Further MFA verification attempts will be rejected.")
	if !rejected {
		return nil
	}
	if _, err := d.EndSessions(ctx, user, c); err != nil {
		return err
	}

	return fault.New(fault.Forbidden, "%s", message).WithCode("mfa_verification_rejected")
}

// recordFactor records that the user has presented a factor, with its code's time step. It deletes
// all unverified factors, which someone else may have enrolled.
func (d *Directory) recordFactor(
	ctx context.Context, tx pgx.Tx, u User, who Identity, f factorRow, step int64, c Client,
) error {
	if _, err := pg.Exec(ctx, tx, `
		update auth.mfa_factors set status = 'verified', last_step = @step, last_challenged_at = now(), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": f.ID, "step": step}); err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, tx, `delete from auth.mfa_factors where user_id = @user and status = 'unverified'`,
		pgx.StrictNamedArgs{"user": u.ID}); err != nil {
		return err
	}

	if f.Status != "verified" {
		if _, err := pg.Exec(ctx, tx, `delete from auth.sessions where user_id = @user and id <> @session and aal = 'aal1'`,
			pgx.StrictNamedArgs{"user": u.ID, "session": who.Session}); err != nil {
			return err
		}
	}

	return d.log(ctx, tx, "verify_factor", u, c)
}

// raiseLevel raises the session to the second level, by a factor or a recovery code.
func (d *Directory) raiseLevel(
	ctx context.Context, tx pgx.Tx, user uuid.UUID, who Identity, factor uuid.NullUUID, method string, c Client,
) (unsignedSession, error) {
	s, err := pg.One[sessionRow](ctx, tx, `
		update auth.sessions s set aal = 'aal2', factor_id = @factor, refresh_token_counter = refresh_token_counter + 1,
			refreshed_at = now(), updated_at = now()
		where s.id = @id returning`+sessionColumns, pgx.StrictNamedArgs{"id": who.Session, "factor": factor})
	if err != nil {
		return unsignedSession{}, err
	}

	if err := addMethod(ctx, tx, s.ID, method); err != nil {
		return unsignedSession{}, err
	}

	u, err := userByID(ctx, tx, user)
	if err != nil {
		return unsignedSession{}, err
	}

	methods, err := methodsOf(ctx, tx, s.ID)
	return unsignedSession{sessionRow: s, user: u, methods: methods, method: method, client: c}, err
}
