package backup

import (
	"context"

	"filippo.io/age"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/token"
)

// OpenArchive returns a backup as an archive, which the caller closes. It fails with NotFound if
// the backup does not exist and with Conflict if it is not completed.
func (s *Service) OpenArchive(ctx context.Context, project, id uuid.UUID, c ExportEncryption) (*Archive, error) {
	to, err := c.recipient(&s.passphrases)
	if err != nil {
		return nil, err
	}

	b, err := s.Get(ctx, project, id)
	if err != nil {
		return nil, err
	}

	if err := CheckCompleted(b); err != nil {
		return nil, err
	}

	stored, err := s.readManifest(ctx, project, id)
	if err != nil {
		return nil, err
	}

	out := stored
	out.Project, out.Source = stored.source(), uuid.Nil

	text := newDigest()
	if err := json.MarshalWrite(text, out); err != nil {
		stored.Files.Close()
		return nil, err
	}

	return &Archive{out, s, stored, text.size, to}, nil
}

// CheckCompleted fails with Conflict, code backup_not_completed, unless a backup is completed.
func CheckCompleted(b Backup) error {
	if b.Status == Completed {
		return nil
	}

	return fault.New(fault.Conflict, "the backup is not completed but %s", b.Status).WithCode("backup_not_completed")
}

// Export returns a backup as an archive, which the caller closes, and writes the audit
// entry. It fails like [Service.OpenArchive].
func (s *Service) Export(
	ctx context.Context, project, id uuid.UUID, c ExportEncryption,
) (*Archive, error) {
	a, err := s.OpenArchive(ctx, project, id, c)
	if err != nil {
		return nil, err
	}

	if err := s.inTx(ctx, func(*store) error { return nil }); err != nil {
		a.Close()
		return nil, err
	}

	return a, nil
}

// identity returns the key pair of this install, derived from its backup key.
func (s *Service) identity() (*age.X25519Identity, error) {
	return age.ParseX25519Identity(bech32("AGE-SECRET-KEY-", token.Derive(s.key(), "recipient of backups")))
}

// Recipient returns the public key of this install: only this install can import a backup encrypted
// for it.
func (s *Service) Recipient() (string, error) {
	own, err := s.identity()
	if err != nil {
		return "", err
	}

	return own.Recipient().String(), nil
}
