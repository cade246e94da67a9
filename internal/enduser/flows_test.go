package enduser

import (
	"strings"
	"testing"
)

func TestChallenge(t *testing.T) {
	t.Parallel()

	good := strings.Repeat("a", 43)
	for c, want := range map[Challenge]bool{{}: true, {good, "s256"}: true, {good, "plain"}: true, {good, ""}: false,
		{"", "s256"}: false, {good[1:], "s256"}: false, {good + "!", "s256"}: false, {good, "md5"}: false} {
		if got := c.check() == nil; got != want {
			t.Errorf("%+v is accepted: %v, want %v", c, got, want)
		}
	}

	// from RFC 7636, appendix B
	f := flowState{CodeChallengeMethod: "s256", CodeChallenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}
	if !f.matches("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") || f.matches("other") {
		t.Error("a verifier does not match its challenge, or another one does")
	}
}
