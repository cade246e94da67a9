package password

import "testing"

// firebaseHash is the example of Firebase's documentation, of the password user1password.
const firebaseHash = "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==" +
	"$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="

func TestFirebase(t *testing.T) {
	t.Parallel()

	h := New(8)
	for secret, want := range map[string]bool{"user1password": true, "user1passworD": false, "": false} {
		if got, err := h.Verify(t.Context(), firebaseHash, secret); got != want || err != nil {
			t.Errorf("%q: got %t, %v; want %t", secret, got, err, want)
		}
	}

	if IsCurrent(firebaseHash) {
		t.Error("a hash of Firebase is not replaced")
	}
	if err := CheckImported(firebaseHash); err != nil {
		t.Error(err)
	}

	for _, hash := range []string{
		"$fbscrypt$", "$fbscrypt$v=1,n=14,r=8,p=1$42xEC+ixf3L2lw==$AA==",
		"$fbscrypt$v=1,n=20,r=8,p=1,ss=Bw==,sk=AA==$AA==$AA==",
		"$fbscrypt$v=1,n=14,r=800,p=1,ss=Bw==,sk=AA==$AA==$AA==",
		"$fbscrypt$v=1,n=-1,r=8,p=1,ss=Bw==,sk=AA==$AA==$AA==",
		"$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=AA==$AA==$AAAA",
	} {
		if CheckImported(hash) == nil {
			t.Errorf("%s: want an error", hash)
		}
		if ok, err := h.Verify(t.Context(), hash, "x"); ok || err == nil {
			t.Errorf("%s: got %t, want an error", hash, ok)
		}
	}
}
