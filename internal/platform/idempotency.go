package platform

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	answerTTL = 24 * time.Hour // retention of responses to requests with an Idempotency-Key

	// A claim with a live holder expires after claimTTL all the same, because the release may have
	// failed. A claim without a holder expires after unheldClaimTTL.
	claimTTL       = time.Hour
	unheldClaimTTL = time.Minute

	// claimLockClass is the first half of the advisory lock key that each server's LISTEN session
	// holds. The second half is the session's PID. The value is arbitrary and belongs to this
	// package.
	claimLockClass = 0x50c1f
)

// Claim assigns a request with an Idempotency-Key to a server.
type Claim struct {
	Key         []byte // hash over the caller, the operation and the Idempotency-Key
	Fingerprint []byte // hash of the request's content
	Holder      uint32 // PID of the server's LISTEN session, see [HoldClaims]; 0: none
	InFlight    bool   // this server already processes a request with the key
}

// HoldClaims ties a server's claims to its LISTEN session, so that other servers take over a dead
// server's claims. The claims' holder is l.PID.
func HoldClaims(l *pg.Listener) {
	l.OnConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := pg.Exec(ctx, conn, `select pg_advisory_lock($1, pg_backend_pid())`, claimLockClass)
		return err
	})
}

// ClaimRequest claims a request for a server, or returns the sealed response to the earlier request
// with the key. It fails with Conflict, code idempotency_key_reused, if the key was used for
// another request. It fails with Conflict, code in_progress, while a live server processes the
// request.
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
				"life": answerTTL, "anonymous_life": unheldClaimTTL, "claim_life": claimTTL, "lock": claimLockClass})
		if err != nil || n == 1 {
			return nil, err
		}
	}

	earlier, err := pg.One[struct {
		Fingerprint []byte
		Answer      []byte
	}](ctx, s.q, `select fingerprint, answer from platform.idempotency where key = @key`,
		pgx.StrictNamedArgs{"key": c.Key})
	switch {
	case fault.Is(err, fault.NotFound): // just released, or about to be claimed
		return nil, inProgressConflict()
	case err != nil:
		return nil, err
	case !bytes.Equal(earlier.Fingerprint, c.Fingerprint):
		return nil, fault.OnField(fault.Conflict, "Idempotency-Key", "idempotency_key_reused",
			"was used for another request")
	case earlier.Answer == nil:
		return nil, inProgressConflict()
	}

	return earlier.Answer, nil
}

func inProgressConflict() error {
	return fault.OnField(fault.Conflict, "Idempotency-Key", "in_progress",
		"belongs to a request that is still in progress")
}

// KeepAnswer stores the sealed response to a claimed request.
func (s *Store) KeepAnswer(ctx context.Context, key []byte, status int, answer []byte) error {
	_, err := pg.Exec(ctx, s.q, `update platform.idempotency set status = @status, answer = @answer where key = @key`,
		pgx.StrictNamedArgs{"key": key, "status": status, "answer": answer})
	return err
}

// ReleaseRequest deletes a failed request's claim.
func (s *Store) ReleaseRequest(ctx context.Context, key []byte) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.idempotency where key = @key and status is null`,
		pgx.StrictNamedArgs{"key": key})
	return err
}

// CheckRequestDone checks for effects from an earlier request under an Idempotency-Key. auditKey is
// the key's hash in audit entries. It fails with Conflict, code already_done, if a committed
// platform change was made under the key. It fails with Conflict, code in_progress, if a project
// created under the key is unfinished: its server died, and another one completes it.
func (s *Store) CheckRequestDone(ctx context.Context, auditKey string) error {
	exists, err := audit.HasKey(ctx, s.q, auditKey)
	if err != nil {
		return err
	}

	if exists {
		return audit.AlreadyDone(nil)
	}

	creating, err := pg.Value[bool](ctx, s.q, `
		select exists (select from platform.projects where request_key = @key and status = 'creating')`,
		pgx.StrictNamedArgs{"key": auditKey})
	if err != nil {
		return err
	}

	if creating {
		return inProgressConflict()
	}

	return nil
}

// ForgetRequests deletes responses that have passed their retention.
func (s *Store) ForgetRequests(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.idempotency where created_at < now() - @life::interval`,
		pgx.StrictNamedArgs{"life": answerTTL})
	return err
}
