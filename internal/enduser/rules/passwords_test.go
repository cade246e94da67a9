package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
)

// TestCheckPassword: only the project's settings decide about a password.
func TestCheckPassword(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		min      int
		sets     []string
		password string
		want     string // code and reasons
	}{
		{6, nil, "password123", ""},
		{6, nil, "letmein", ""},
		{6, nil, "qwerty", ""},
		{6, nil, "ann@example.com", ""},
		{8, nil, "letmein", "weak_password [length]"},
		{6, []string{"digit"}, "password", "weak_password [characters]"},
		{6, []string{"digit"}, "pass", "weak_password [length characters]"},
		{6, nil, strings.Repeat("x", 1025), "validation_failed <nil>"},
		{8, []string{"lower", "digit"}, "short", "weak_password [length characters]"},
		{8, []string{"lower", "digit"}, "longer one", "weak_password [characters]"},
		{8, []string{"lower", "digit"}, "a1", "weak_password [length]"},
		{8, []string{"lower", "digit"}, "password1", ""},
	} {
		s := Settings{PasswordMinLength: tt.min, PasswordRequiredCharacters: tt.sets}

		got := ""
		if err := s.CheckPassword(tt.password); err != nil {
			got = fmt.Sprint(fault.Of(err).Code, " ", fault.Of(err).Extra["reasons"])
		}
		if got != tt.want {
			t.Errorf("%d characters, %v: %.20q: got %q, want %q", tt.min, tt.sets, tt.password, got, tt.want)
		}
	}

	s := Settings{PasswordMinLength: 8, PasswordRequiredCharacters: []string{"lower", "digit"}}
	const want = "Password should be at least 8 characters. " +
		"Password should contain at least one character of each: abcdefghijklmnopqrstuvwxyz, 0123456789."
	if got := fault.Of(s.CheckPassword("short")).Detail; got != want {
		t.Errorf("got the text %q, want %q", got, want)
	}
}
