package password

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/socle-dev/socle/internal/fault"
)

//go:embed common.txt
var commonText string

// common returns the most common passwords. The header of common.txt names its source.
var common = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.Lines(commonText) {
		if !strings.HasPrefix(word, "# ") {
			words[strings.TrimSpace(word)] = true
		}
	}

	return words
})

// CheckLength fails with Unprocessable, on the field password, if a new password has fewer than min
// characters or more than 1024 bytes. It does not trim the password, and any character is allowed.
func CheckLength(password string, min int) error {
	if len(password) > maxPasswordSize {
		return tooLong()
	}
	if utf8.RuneCountInString(password) < min {
		return policyError("too_short", "must have at least %d characters", min)
	}

	return nil
}

// Check validates a platform account's new password against the policy. It fails like
// [CheckLength], and if the password is among the most common, or equal to the e-mail address, its
// local part or the username, ignoring case and width. email and username may be "".
func (h *Hasher) Check(password, email, username string) error {
	if err := CheckLength(password, h.min); err != nil {
		return err
	}

	plain := fold(password)
	if common()[plain] {
		return policyError("too_common", "must not be one of the most common passwords")
	}

	email = fold(strings.TrimSpace(email))
	local, _, _ := strings.Cut(email, "@")
	if plain == email || plain == local || plain == fold(strings.TrimSpace(username)) {
		return policyError("too_obvious", "must not be the e-mail address or username")
	}

	return nil
}

// Rule returns the password policy as a sentence.
func (h *Hasher) Rule() string {
	return fmt.Sprintf("At least %d characters, and not one of the most common passwords.", h.min)
}

// fold maps texts that differ in case and width only to one text.
func fold(s string) string {
	return cases.Fold().String(norm.NFKC.String(s))
}

func tooLong() error { return policyError("too_long", "must have at most %d bytes", maxPasswordSize) }

func policyError(code, format string, args ...any) error {
	return fault.OnField(fault.Unprocessable, "password", code, format, args...)
}
