package backup

import (
	"errors"

	"github.com/socle-dev/socle/internal/fault"
)

// errDamaged reports that stored data of a backup is missing or was changed.
var errDamaged = errors.New("the stored backup is damaged")

// errContentMismatch reports that the bytes of a file do not match their recorded size and
// checksum.
var errContentMismatch = fault.New(fault.Unprocessable, "the bytes of a file do not match its checksum")

// errNewer reports that a backup was made by a newer release.
var errNewer = fault.New(fault.Unprocessable,
	"the backup was made by a newer version of Socle; upgrade Socle to restore it").WithCode("newer_version")

// Errors of opening an uploaded archive.
var (
	errPassphrase = fault.OnField(fault.Unprocessable, "X-Passphrase", "wrong_passphrase", "does not open the backup")
	errNoKey      = fault.OnField(fault.Unprocessable, "X-Passphrase", "required",
		"is required: the backup is not encrypted for this install")
	errArchive = fault.New(fault.Unprocessable, "the file is damaged, truncated, or not a downloaded backup").
			WithCode("damaged_backup")
)
