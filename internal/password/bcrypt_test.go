package password

import (
	"context"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/socle-dev/socle/internal/fault"
)

func TestBcrypt(t *testing.T) {
	t.Parallel()

	hash, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}

	h := New(8)
	for word, want := range map[string]bool{"correct horse": true, "correct horsf": false} {
		if got, err := h.Verify(t.Context(), string(hash), word); got != want || err != nil {
			t.Errorf("Verify(%q) = %v, %v, want %v", word, got, err, want)
		}
	}

	own, err := h.Hash(t.Context(), "correct horse")
	if err != nil || !IsCurrent(own) || IsCurrent(string(hash)) {
		t.Errorf("IsCurrent(%q), IsCurrent(%q) = %v, %v (%v), want true, false", own, hash, IsCurrent(own),
			IsCurrent(string(hash)), err)
	}

	costly := "$2a$31$" + string(hash[7:])
	for imported, want := range map[string]bool{
		string(hash): true, own: true, costly: false, "plain": false, string(hash) + "x": false,
		"$argon2id$v=19$m=1048576,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4": false,
	} {
		if got := CheckImported(imported) == nil; got != want {
			t.Errorf("CheckImported(%q) accepts: %v, want %v", imported, got, want)
		}
	}
	if _, err := h.Verify(t.Context(), costly, "correct horse"); !fault.Is(err, fault.Internal) {
		t.Errorf("Verify of a costly hash = %v, want an error at once", err)
	}
}

// TestShare: one project's hashes leave room in the queue for those of others.
func TestShare(t *testing.T) {
	t.Parallel()

	all := New(8)
	all.fill()

	greedy, other := all.For("greedy", 6), all.For("other", 6)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, maxShare+1)
	for range maxShare + 1 {
		go func() {
			_, err := greedy.Hash(ctx, "correct horse")
			results <- err
		}()
	}

	if err := <-results; !fault.Is(err, fault.TooMany) {
		t.Errorf("a hash beyond the share = %v, want TooMany", err)
	}

	done := make(chan error, 1)
	go func() {
		_, err := other.Hash(t.Context(), "correct horse")
		done <- err
	}()

	<-all.slots
	cancel()

	if err := <-done; err != nil {
		t.Errorf("a hash of another project = %v", err)
	}

	for range maxShare {
		<-results
	}

	if len(all.shares) != 0 {
		t.Errorf("shares %v are left, want none", all.shares)
	}
}
