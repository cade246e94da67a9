package api

import (
	"net/http"
	"testing"
)

// TestSignatureUnambiguous checks that a line break in a path or payload does not make the
// signature valid for another pair of path and payload.
func TestSignatureUnambiguous(t *testing.T) {
	t.Parallel()

	s := New(Config{SigningKey: []byte("key")})
	for _, path := range []string{"/files/a", "/files/a\nb"} {
		if !s.isSignature(s.mac(http.MethodGet, path, "cGF5"), http.MethodGet, path, "cGF5") {
			t.Errorf("%q: its own signature is refused", path)
		}
	}

	if s.isSignature(s.mac(http.MethodGet, "/files/a\nb", "cGF5"), http.MethodGet, "/files/a", "b\ncGF5") {
		t.Error("a signature is valid for another path")
	}

	if !s.isSignature(s.formerMAC(http.MethodGet, "/files/a", "cGF5"), http.MethodGet, "/files/a", "cGF5") {
		t.Error("a signature of the previous release is refused")
	}
	if s.isSignature(s.formerMAC(http.MethodGet, "/files/a\nb", "cGF5"), http.MethodGet, "/files/a", "b\ncGF5") {
		t.Error("a signature of the previous release is valid for another path")
	}
}
