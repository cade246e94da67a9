package token

import (
	"net/http"
	"testing"
)

// TestSignedURLUnambiguous checks that a line break in a path or payload does not make the
// signature valid for another pair of path and payload.
func TestSignedURLUnambiguous(t *testing.T) {
	t.Parallel()

	key := []byte("key")
	for _, path := range []string{"/files/a", "/files/a\nb"} {
		if !VerifyURL(key, SignURL(key, http.MethodGet, path, "cGF5"), http.MethodGet, path, "cGF5") {
			t.Errorf("%q: its own signature is refused", path)
		}
	}

	if VerifyURL(key, SignURL(key, http.MethodGet, "/files/a\nb", "cGF5"), http.MethodGet, "/files/a", "b\ncGF5") {
		t.Error("a signature is valid for another path")
	}

	if !VerifyURL(key, formerURLMAC(key, http.MethodGet, "/files/a", "cGF5"), http.MethodGet, "/files/a", "cGF5") {
		t.Error("a signature of the previous release is refused")
	}
	if VerifyURL(key, formerURLMAC(key, http.MethodGet, "/files/a\nb", "cGF5"), http.MethodGet, "/files/a", "b\ncGF5") {
		t.Error("a signature of the previous release is valid for another path")
	}
}
