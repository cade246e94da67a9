package password

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/socle-dev/socle/internal/fair"
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

// TestTurns: an account that fills the queue, from any project, delays others by one hash.
func TestTurns(t *testing.T) {
	t.Parallel()

	all := New(8)
	held := all.fill()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	results := make(chan error, maxQueued+2)
	hash := func(ctx context.Context, owner fair.Key) {
		_, err := all.For(owner).Hash(ctx, "correct horse")
		results <- err
	}
	for i := range maxQueued + 1 {
		go hash(ctx, fair.Key{Account: "greedy", Part: fmt.Sprint(i % 10)})
	}

	if err := <-results; !fault.Is(err, fault.TooMany) {
		t.Errorf("a hash beyond the queue = %v, want TooMany", err)
	}

	done := make(chan error, 1)
	go func() {
		_, err := all.For(fair.Key{Account: "other"}).Hash(t.Context(), "correct horse")
		done <- err
	}()

	if err := <-results; !fault.Is(err, fault.TooMany) { // makes room in the queue
		t.Errorf("the youngest hash of the account that waits most = %v, want TooMany", err)
	}

	held[0].Release()

	if err := <-done; err != nil {
		t.Errorf("a hash of another account = %v", err)
	}

	cancel()
	for range maxQueued - 1 {
		if err := <-results; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("a hash of the greedy account = %v", err)
		}
	}
}
