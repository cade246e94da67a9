package platform

import (
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// TestClaimRequest checks that one server at a time executes a request, that its response is
// replayed, and that the claim of a dead server is taken over.
func TestClaimRequest(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	claim := func(c Claim, want, code string) {
		t.Helper()

		c.Key = []byte("key")
		got, err := s.ClaimRequest(t.Context(), c)
		if (code == "") != (err == nil) || (err != nil && fault.Of(err).CodeWord() != code) || string(got) != want {
			t.Errorf("got %q, %v, want %q and code %q", got, err, want, code)
		}
	}

	first, other := []byte("first"), []byte("other")
	conn, err := pg.Acquire(t.Context(), s.db.pool)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	// The session of a live holder has the lock.
	_, err = pg.Exec(t.Context(), conn, `select pg_advisory_lock($1, pg_backend_pid())`, claimLockClass)
	if err != nil {
		t.Fatal(err)
	}

	live := conn.Conn().PgConn().PID()
	claim(Claim{Fingerprint: first, Holder: live}, "", "")
	claim(Claim{Fingerprint: first, Holder: live, InFlight: true}, "", "in_progress")
	claim(Claim{Fingerprint: first, Holder: live + 1}, "", "in_progress")
	claim(Claim{Fingerprint: other, Holder: live + 1}, "", "idempotency_key_reused")

	if _, err := pg.Exec(t.Context(), conn, `select pg_advisory_unlock_all()`); err != nil {
		t.Fatal(err)
	}

	claim(Claim{Fingerprint: first, Holder: live + 1}, "", "")

	if err := s.KeepAnswer(t.Context(), []byte("key"), 201, []byte("sealed")); err != nil {
		t.Fatal(err)
	}

	claim(Claim{Fingerprint: first, Holder: live}, "sealed", "")
	claim(Claim{Fingerprint: other, Holder: live}, "", "idempotency_key_reused")
	if err := s.ReleaseRequest(t.Context(), []byte("key")); err != nil { // an answered one stays
		t.Fatal(err)
	}

	claim(Claim{Fingerprint: first, Holder: live}, "sealed", "")
	exec(t, s, `update platform.idempotency set created_at = now() - interval '25 hours'`)
	claim(Claim{Fingerprint: other, Holder: live}, "", "")

	if err := s.ReleaseRequest(t.Context(), []byte("key")); err != nil {
		t.Fatal(err)
	}

	claim(Claim{Fingerprint: first, Holder: live}, "", "")
	exec(t, s, `update platform.idempotency set created_at = now() - interval '25 hours'`)
	if err := s.ForgetRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, s, `select from platform.idempotency`); n != 0 {
		t.Errorf("got %d claims, want none", n)
	}
}
