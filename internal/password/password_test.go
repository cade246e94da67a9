package password

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

func TestCheck(t *testing.T) {
	t.Parallel()

	h := New(8)
	for _, tt := range []struct{ password, email, username, code string }{
		{"correct horse", "jo@example.com", "jo", ""},
		{"1234567", "", "", "too_short"},
		{"", "", "", "too_short"},
		{"ééééééé", "", "", "too_short"},
		{"éèêëàâäç", "", "", ""},
		{"a\x00b\x00c\x00d\x00", "", "", ""},
		{"cheese  ", "", "", ""},
		{strings.Repeat("long", 256), "", "", ""},
		{strings.Repeat("long", 256) + "x", "", "", "too_long"},
		{"password1", "", "", "too_common"},
		{"PassWord1", "", "", "too_common"},
		{"ｐａｓｓｗｏｒｄ１", "", "", "too_common"},
		{"baseball", "", "", "too_common"},
		{"johanna@example.com", "johanna@example.com", "", "too_obvious"},
		{"Johanna@Example.com", " johanna@example.COM ", "", "too_obvious"},
		{"JOHANNA-LEE", "johanna-lee@example.com", "", "too_obvious"},
		{"Johanna_Lee", "", "johanna_lee", "too_obvious"},
		{"johanna_lee2", "johanna_lee@example.com", "johanna_lee", ""},
	} {
		err := h.Check(tt.password, tt.email, tt.username)
		if tt.code == "" {
			if err != nil {
				t.Errorf("Check(%q, %q, %q) = %v, want nil", tt.password, tt.email, tt.username, err)
			}
			continue
		}

		f := fault.Of(err)
		if f == nil || f.Kind != fault.Unprocessable || f.Code != tt.code || len(f.Fields) != 1 ||
			f.Fields[0].Name != "password" {
			t.Errorf("Check(%q, %q, %q) = %+v, want code %s on field password", tt.password, tt.email,
				tt.username, f, tt.code)
		}
	}

	if err := New(12).Check("elevenchars", "", ""); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("New(12).Check of 11 characters = %v, want Unprocessable", err)
	}
}

func TestCommon(t *testing.T) {
	t.Parallel()

	words := common()
	if got, want := len(words), 3395; got != want {
		t.Errorf("got %d common passwords, want %d", got, want)
	}

	for word := range words {
		if word == "" || fold(word) != word {
			t.Errorf("common password %q is not in its folded form, so it is never found", word)
		}
	}
}

func TestHash(t *testing.T) {
	t.Parallel()

	ctx, h := t.Context(), New(8)
	long := strings.Repeat("x", 72)
	for _, tt := range []struct{ right, wrong string }{
		{"correct horse", "correct horsf"},
		{long + "12345678", long + "12345679"},
		{"nul\x00 counts", "nul"},
		{"trailing space ", "trailing space"},
	} {
		hash, err := h.Hash(ctx, tt.right)
		if err != nil {
			t.Fatal(err)
		}

		if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
			t.Errorf("hash = %q, want argon2id of 19 MiB, 2 passes and 1 lane", hash)
		}
		if ok, err := h.Verify(ctx, hash, tt.right); !ok || err != nil {
			t.Errorf("Verify(%q) = %v, %v, want true", tt.right, ok, err)
		}
		if ok, err := h.Verify(ctx, hash, tt.wrong); ok || err != nil {
			t.Errorf("Verify(%q) against the hash of %q = %v, %v, want false", tt.wrong, tt.right, ok, err)
		}
	}

	one, err1 := h.Hash(ctx, "correct horse")
	two, err2 := h.Hash(ctx, "correct horse")
	if one == two || err1 != nil || err2 != nil {
		t.Errorf("two hashes of one password are %q and %q (%v, %v), want distinct ones", one, two, err1, err2)
	}
}

// TestVerifyOtherParameters: hashes with other parameters verify. The reference implementation made
// this one (echo -n password | argon2 somesalt -id -t 2 -k 256 -p 1 -l 32).
func TestVerifyOtherParameters(t *testing.T) {
	t.Parallel()

	const hash = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	for password, want := range map[string]bool{"password": true, "differentpassword": false} {
		if got, err := New(8).Verify(t.Context(), hash, password); got != want || err != nil {
			t.Errorf("Verify(%q) = %v, %v, want %v", password, got, err, want)
		}
	}
}

func TestVerifyUnknownAccount(t *testing.T) {
	t.Parallel()

	h := New(8)
	if ok, err := h.Verify(t.Context(), "", "correct horse"); ok || err != nil {
		t.Errorf("Verify for no account = %v, %v, want false", ok, err)
	}

	// It waits for a slot like any other, so it computes a hash.
	h.fill()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := h.Verify(ctx, "", "correct horse"); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify for no account while all slots are taken = %v, want it to wait", err)
	}
}

func TestVerifyMalformedHash(t *testing.T) {
	t.Parallel()

	h := New(8)
	good, err := h.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}

	for _, hash := range []string{
		"plain", "$", "$$$$$", good + "x", good[:len(good)-3], strings.Replace(good, "t=2", "t=0", 1),
		strings.Replace(good, "p=1", "p=0", 1), strings.Replace(good, "p=1", "p=999", 1),
		strings.Replace(good, "m=19456", "m=4294967295", 1), strings.Replace(good, "t=2", "t=4294967295", 1),
		strings.Replace(good, "m=19456", "m=77825", 1), strings.Replace(good, "t=2", "t=9", 1),
		strings.Replace(good, "p=1", "p=100", 1), strings.Replace(good, "m=19456", "m=0", 1),
		strings.Replace(good, "m=19456,t=2", "m=1,t=100", 1),
		strings.Replace(good, "argon2id", "argon2i", 1), strings.Replace(good, "v=19", "v=16", 1),
	} {
		if ok, err := h.Verify(t.Context(), hash, "correct horse"); ok || !fault.Is(err, fault.Internal) ||
			!errors.Is(err, ErrMalformed) {
			t.Errorf("Verify against %q = %v, %v, want an internal error", hash, ok, err)
		}
	}
}

// TestTooLong: a password that is too long is rejected without a hash, even if no slot is free.
func TestTooLong(t *testing.T) {
	t.Parallel()

	h := New(8)
	h.fill()

	long := strings.Repeat("x", 1<<20)
	if _, err := h.Hash(t.Context(), long); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("Hash of 1 MiB = %v, want Unprocessable", err)
	}

	for _, hash := range []string{"", unknownAccount.String()} {
		if ok, err := h.Verify(t.Context(), hash, long); ok || err != nil {
			t.Errorf("Verify(%q) of 1 MiB = %v, %v, want false", hash, ok, err)
		}
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()

	h := New(8)
	held := h.fill()
	ctx, cancel := context.WithCancel(t.Context())

	var group sync.WaitGroup
	errs := make(chan error, maxQueued+1)
	for range maxQueued + 1 {
		group.Go(func() {
			_, err := h.Hash(ctx, "correct horse")
			errs <- err
		})
	}

	first := fault.Of(<-errs) // only the one over the limit can have returned
	if first.Kind != fault.TooMany || first.RetryAfter <= 0 {
		t.Errorf("Hash with %d waiting = %+v, want TooMany with a time to retry after", maxQueued, first)
	}

	cancel()
	group.Wait()
	close(errs)

	for err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Hash that waited = %v, want it to end with its context", err)
		}
	}

	held[0].Release()
	if _, err := h.Hash(t.Context(), "correct horse"); err != nil {
		t.Errorf("Hash after the line is gone = %v", err)
	}

	if got, want := h.places.Stats().InUse, int64(len(held)-1); got != want {
		t.Errorf("%d slots are taken, want %d: Hash gives its own back", got, want)
	}
}

// TestPlaces checks that an account hashes on half of the processors at most, and that one without
// a hash finds a place beside two that take what they can.
func TestPlaces(t *testing.T) {
	t.Parallel()

	for processors, half := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 8: 4} {
		pool := fair.New(places(processors))
		for _, account := range []string{"first", "second"} {
			held := 0
			for pool.TryAcquire(fair.Key{Account: account}, 1) != nil {
				held++
			}
			if held < 1 || held > half || (account == "first" && held != half) {
				t.Errorf("%d processors: the %s account holds %d places, want at most %d", processors, account, held, half)
			}
		}

		if processors > 1 && pool.TryAcquire(fair.Key{Account: "newcomer"}, 1) == nil {
			t.Errorf("%d processors: a newcomer found no place", processors)
		}
	}
}

// fill takes all slots, like hashes of many accounts that never end.
func (h *Hasher) fill() (held []*fair.Lease) {
	for {
		lease := h.places.TryAcquire(fair.Key{Account: fmt.Sprint("holder ", len(held))}, 1)
		if lease == nil {
			return held
		}

		held = append(held, lease)
	}
}
