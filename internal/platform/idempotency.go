package platform

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// requestLife is how long the answer to a request with an Idempotency-Key is kept.
const requestLife = 24 * time.Hour

// ClaimRequest notes that the request of a key is under way, or returns the answer of the one before, sealed. It fails with
// Conflict, code idempotency_key_reused, if that one was another request, and with Conflict, code in_progress, if it is under way still. One
// that is under way for longer than takeOver died with its server.
func (s *Store) ClaimRequest(ctx context.Context, key, fingerprint []byte, takeOver time.Duration) (answer []byte, err error) {
	n, err := pg.Exec(ctx, s.q, `
		insert into platform.idempotency as i (key, fingerprint) values (@key, @fingerprint)
		on conflict (key) do update set created_at = now(), fingerprint = @fingerprint, status = null, answer = null
		where i.status is null and i.created_at < now() - @take_over::interval and i.fingerprint = @fingerprint
		   or i.created_at < now() - @life::interval`,
		pgx.StrictNamedArgs{"key": key, "fingerprint": fingerprint, "take_over": takeOver, "life": requestLife})
	if err != nil || n == 1 {
		return nil, err
	}
	before, err := pg.One[struct {
		Fingerprint []byte
		Answer      []byte
	}](ctx, s.q, `select fingerprint, answer from platform.idempotency where key = @key`, pgx.StrictNamedArgs{"key": key})
	switch {
	case fault.Is(err, fault.NotFound): // it failed at this moment
		return nil, inProgress()
	case err != nil:
		return nil, err
	case !bytes.Equal(before.Fingerprint, fingerprint):
		return nil, fault.OnField(fault.Conflict, "Idempotency-Key", "idempotency_key_reused", "was used for another request")
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
	_, err := pg.Exec(ctx, s.q, `delete from platform.idempotency where key = @key and status is null`, pgx.StrictNamedArgs{"key": key})
	return err
}

// ForgetRequests removes the answers that were kept long enough.
func (s *Store) ForgetRequests(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.idempotency where created_at < now() - @life::interval`,
		pgx.StrictNamedArgs{"life": requestLife})
	return err
}
