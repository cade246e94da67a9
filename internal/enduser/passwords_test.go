package enduser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/password"
)

// TestCheckPassword: only the project's settings decide about a password.
func TestCheckPassword(t *testing.T) {
	t.Parallel()

	d := &Directory{service: &Service{Config: Config{Passwords: password.New(8)}}}
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
	} {
		d.PasswordMinLength, d.PasswordRequiredCharacters = tt.min, tt.sets

		got := ""
		if err := d.checkPassword(tt.password); err != nil {
			got = fmt.Sprint(fault.Of(err).Code, " ", fault.Of(err).Extra["reasons"])
		}
		if got != tt.want {
			t.Errorf("%d characters, %v: %.20q: got %q, want %q", tt.min, tt.sets, tt.password, got, tt.want)
		}
	}
}
