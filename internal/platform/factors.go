package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// Factor is a user's second factor. The caller seals and opens its secret.
type Factor struct {
	Sealed        []byte
	ConfirmedAt   *time.Time // nil: not confirmed, so log-ins do not require it
	RecoveryCodes int        // number of unused codes
}

// GetFactor returns a user's second factor, confirmed or not. It fails with NotFound without one.
func (s *Store) GetFactor(ctx context.Context, user uuid.UUID) (Factor, error) {
	return pg.One[Factor](ctx, s.q, `
		select sealed, confirmed_at, (select count(*)::int from platform.recovery_codes c where c.user_uuid = f.user_uuid) as recovery_codes
		from platform.second_factors f where user_uuid = @user`, pgx.StrictNamedArgs{"user": user})
}

// CreateFactor stores an unconfirmed second factor and replaces an earlier unconfirmed one. It
// fails with Conflict if the user has a confirmed one. Call it in a transaction.
func (s *Store) CreateFactor(ctx context.Context, user uuid.UUID, sealed []byte) error {
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

// ConfirmFactor confirms a second factor after the user has presented the code of a step. From then
// on a log-in requires the factor or one of the recovery codes with these hashes. It fails with
// Conflict if the factor was confirmed or replaced meanwhile. Call it in a transaction.
func (s *Store) ConfirmFactor(ctx context.Context, user uuid.UUID, sealed []byte, step int64, hashes [][]byte) error {
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

// UseStep uses up the code of a step. It reports false if that code or a later one was used
// before, so one of several concurrent requests succeeds. Call it in the transaction of the
// protected change.
func (s *Store) UseStep(ctx context.Context, user uuid.UUID, step int64) (bool, error) {
	n, err := pg.Exec(ctx, s.q, `
		update platform.second_factors set last_step = @step where user_uuid = @user and confirmed_at is not null and last_step < @step`,
		pgx.StrictNamedArgs{"user": user, "step": step})
	return n == 1, err
}

// SpendRecoveryCode is [Store.UseStep] for the hash of a recovery code.
func (s *Store) SpendRecoveryCode(ctx context.Context, user uuid.UUID, hash []byte) (bool, error) {
	n, err := pg.Exec(ctx, s.q, `delete from platform.recovery_codes where user_uuid = @user and hash = @hash`,
		pgx.StrictNamedArgs{"user": user, "hash": hash})
	return n == 1, err
}

// ResetFactor is [Store.DeleteFactor] on behalf of an administrator. It also deletes all sessions
// of the user.
func (s *Store) ResetFactor(ctx context.Context, user uuid.UUID) error {
	if err := s.DeleteFactor(ctx, user); err != nil {
		return err
	}
	return s.endSessions(ctx, user, uuid.Nil)
}

// DeleteFactor deletes a user's second factor and its recovery codes. It fails with NotFound
// without one. Call it in a transaction.
func (s *Store) DeleteFactor(ctx context.Context, user uuid.UUID) error {
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
