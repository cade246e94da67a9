package platform

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
)

const (
	requestLife = 24 * time.Hour // how long the answer to a request with an Idempotency-Key is kept

	// A claim whose holder is alive expires all the same after claimLife, since releasing it may have failed.
	// A claim without a holder expires after anonymousLife.
	claimLife     = time.Hour
	anonymousLife = time.Minute

	// claimLock is the first half of the key of the advisory lock that each server's LISTEN session holds. The
	// second half is the session's PID. An arbitrary constant of this package.
	claimLock = 0x50c1f
)

// Claim says which server works on which request with an Idempotency-Key.
type Claim struct {
	Key         []byte // hash of the caller, the operation and the Idempotency-Key
	Fingerprint []byte // hash of what the request says
	Holder      uint32 // PID of the server's LISTEN session, see [HoldClaims]; 0 if it has none
	InFlight    bool   // this server is already working on a request with the key
}

// HoldClaims makes a server's claims last as long as its LISTEN session: other servers take over what a dead one
// has claimed. The holder of the claims is l.PID.
func HoldClaims(l *pg.Listener) {
	l.Catch(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := pg.Exec(ctx, conn, `select pg_advisory_lock($1, pg_backend_pid())`, claimLock)
		return err
	})
}

// ClaimRequest claims the request of a key for a server, or returns the sealed answer to the one before. It fails with
// Conflict, code idempotency_key_reused, if the key was used for another request, and with Conflict, code in_progress,
// while a live server works on the request.
func (s *Store) ClaimRequest(ctx context.Context, c Claim) (answer []byte, err error) {
	if !c.InFlight {
		n, err := pg.Exec(ctx, s.q, `
			insert into platform.idempotency as i (key, fingerprint, holder) values (@key, @fingerprint, nullif(@holder::integer, 0))
			on conflict (key) do update
			set created_at = now(), fingerprint = @fingerprint, holder = nullif(@holder::integer, 0), status = null, answer = null
			where i.created_at < now() - @life::interval
				or (i.answer is null and i.fingerprint = @fingerprint and (
					i.holder = @holder::integer
					or i.created_at < now() - case when i.holder is null then @anonymous_life::interval else @claim_life::interval end
					or pg_try_advisory_xact_lock(@lock, i.holder)))`,
			pgx.StrictNamedArgs{"key": c.Key, "fingerprint": c.Fingerprint, "holder": int32(c.Holder),
				"life": requestLife, "anonymous_life": anonymousLife, "claim_life": claimLife, "lock": claimLock})
		if err != nil || n == 1 {
			return nil, err
		}
	}

	before, err := pg.One[struct {
		Fingerprint []byte
		Answer      []byte
	}](ctx, s.q, `select fingerprint, answer from platform.idempotency where key = @key`,
		pgx.StrictNamedArgs{"key": c.Key})
	switch {
	case fault.Is(err, fault.NotFound): // it has failed in this moment, or is about to be claimed
		return nil, inProgress()
	case err != nil:
		return nil, err
	case !bytes.Equal(before.Fingerprint, c.Fingerprint):
		return nil, fault.OnField(fault.Conflict, "Idempotency-Key", "idempotency_key_reused",
			"was used for another request")
	case before.Answer == nil:
		return nil, inProgress()
	}

	return before.Answer, nil
}

func inProgress() error {
	return fault.OnField(fault.Conflict, "Idempotency-Key", "in_progress", "belongs to a request that is under way")
}

// KeepAnswer keeps the sealed answer of a claimed request.
func (s *Store) KeepAnswer(ctx context.Context, key []byte, status int, answer []byte) error {
	_, err := pg.Exec(ctx, s.q, `update platform.idempotency set status = @status, answer = @answer where key = @key`,
		pgx.StrictNamedArgs{"key": key, "status": status, "answer": answer})
	return err
}

// ReleaseRequest forgets a claimed request that failed.
func (s *Store) ReleaseRequest(ctx context.Context, key []byte) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.idempotency where key = @key and status is null`,
		pgx.StrictNamedArgs{"key": key})
	return err
}

// CheckRequestDone fails with Conflict, code already_done, if a committed change of the platform was made under an
// Idempotency-Key, by the hash that audit entries have, and with Conflict, code in_progress, if a project that was
// asked for under it is still being created: the server that began died, and another one completes the project.
func (s *Store) CheckRequestDone(ctx context.Context, auditKey string) error {
	done, err := audit.HasKey(ctx, s.q, auditKey)
	if err != nil {
		return err
	}

	if done {
		return audit.AlreadyDone(nil)
	}

	creating, err := pg.Value[bool](ctx, s.q, `
		select exists (select from platform.projects where request_key = @key and status = 'creating')`,
		pgx.StrictNamedArgs{"key": auditKey})
	if err == nil && creating {
		return inProgress()
	}

	return err
}

// ForgetRequests removes the answers that were kept long enough.
func (s *Store) ForgetRequests(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.idempotency where created_at < now() - @life::interval`,
		pgx.StrictNamedArgs{"life": requestLife})
	return err
}
