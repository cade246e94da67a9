package password

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"socle/internal/fault"
)

//go:embed common.txt
var commonText string

// common returns the most common passwords. Its source stands at the head of common.txt.
var common = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.Lines(commonText) {
		if !strings.HasPrefix(word, "# ") {
			words[strings.TrimSpace(word)] = true
		}
	}

	return words
})

// Check reports whether an account may have the password, which is taken as it is: not trimmed, any character
// counts. It is refused as Unprocessable, on the field password, if it is shorter than the minimum or has more
// than 1024 bytes, is among the most common, or is the account's e-mail address, the part of it
// before the @, or its username, in whatever case or width. An empty email or username is no one's.
func (h *Hasher) Check(password, email, username string) error {
	if len(password) > maxSize {
		return tooLong()
	}
	if utf8.RuneCountInString(password) < h.min {
		return refused("too_short", "must have at least %d characters", h.min)
	}

	folded := fold(password)
	if common()[folded] {
		return refused("too_common", "must not be one of the most common passwords")
	}

	email = fold(strings.TrimSpace(email))
	local, _, _ := strings.Cut(email, "@")
	if folded == email || folded == local || folded == fold(strings.TrimSpace(username)) {
		return refused("too_obvious", "must not be the e-mail address or username")
	}

	return nil
}

// fold maps texts that look alike but for case and width to one.
func fold(s string) string {
	return cases.Fold().String(norm.NFKC.String(s))
}

func tooLong() error { return refused("too_long", "must have at most %d bytes", maxSize) }

func refused(code, format string, args ...any) error {
	return fault.OnField(fault.Unprocessable, "password", code, format, args...)
}
