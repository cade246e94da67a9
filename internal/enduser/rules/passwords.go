package rules

import (
	"fmt"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/password"
)

// characterSets are the sets of characters that a project can require.
var characterSets = map[string]string{
	"lower":  "abcdefghijklmnopqrstuvwxyz",
	"upper":  "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
	"letter": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
	"digit":  "0123456789",
	"symbol": "!@#$%^&*()_+-=[]{};'\\:\"|<>?,./`~",
}

// validateCharacters checks the names of required sets.
func validateCharacters(sets []string) error {
	for _, name := range sets {
		if characterSets[name] == "" || len(sets) > len(characterSets) {
			return refuse("password_required_characters", "unknown",
				"must be some of lower, upper, letter, digit, symbol")
		}
	}

	return nil
}

// checkPassword fails unless a password has min characters, and one of each set.
func checkPassword(secret string, min int, sets []string) error {
	var texts, reasons []string
	if err := password.CheckLength(secret, min); err != nil {
		if fault.Of(err).Code != "too_short" {
			return fault.New(fault.Invalid, "Password is too long").WithCode("validation_failed")
		}

		texts = append(texts, fmt.Sprintf("Password should be at least %d characters.", min))
		reasons = append(reasons, "length")
	}
	if missing := missingCharacters(sets, secret); missing != "" {
		texts, reasons = append(texts, missing), append(reasons, "characters")
	}

	if len(reasons) > 0 {
		return WeakPassword(strings.Join(texts, " "), reasons...)
	}

	return nil
}

// missingCharacters returns a sentence about the required sets if a password lacks one, or "".
func missingCharacters(names []string, secret string) string {
	var sets []string
	missing := false
	for _, name := range names {
		sets = append(sets, characterSets[name])
		missing = missing || !strings.ContainsAny(secret, characterSets[name])
	}
	if !missing {
		return ""
	}

	return "Password should contain at least one character of each: " + strings.Join(sets, ", ") + "."
}

// WeakPassword returns the failure of a password, with the rules that it breaks: length, characters
// or pwned.
func WeakPassword(detail string, reasons ...string) *fault.Error {
	e := fault.New(fault.Unprocessable, "%s", detail).WithCode("weak_password")
	e.Extra = map[string]any{"reasons": reasons}

	return e
}
