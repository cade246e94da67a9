package archive

import (
	"errors"

	"github.com/socle-dev/socle/internal/fault"
)

// ErrDamaged reports that a backup part is missing or was changed.
var ErrDamaged = errors.New("the stored backup is damaged")

// ErrMismatch reports that a part's bytes do not match the recorded size and checksum.
var ErrMismatch = fault.New(fault.Unprocessable, "the bytes of a file do not match its checksum")

// ErrNewer reports that a backup was made by a newer release.
var ErrNewer = fault.New(fault.Unprocessable,
	"the backup was made by a newer version of Socle; upgrade Socle to restore it").WithCode("newer_version")

// Invalid returns the error for a file that is not a whole and unchanged archive: Unprocessable,
// code damaged_backup. The cause may be nil.
func Invalid(cause error) error {
	return fault.New(fault.Unprocessable, "the file is damaged, truncated, or not a downloaded backup").
		WithCode("damaged_backup").WithCause(cause)
}

// Decryption errors, on the header that carries the passphrase.
var (
	errPassphrase = fault.OnField(fault.Unprocessable, "X-Passphrase", "wrong_passphrase", "does not open the backup")
	errNoKey      = fault.OnField(fault.Unprocessable, "X-Passphrase", "required",
		"is required: the backup is not encrypted for this install")
)
