package backup

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/backup/archive"
)

// Export is a backup that is exported as an archive.
type Export struct {
	service  *Service
	writer   *archive.Writer
	manifest archive.Manifest // as stored by this install
}

// Export returns a backup as an archive, which the caller closes, and writes the audit entry. It
// fails with NotFound if the backup does not exist and with Conflict if it is not completed.
func (s *Service) Export(ctx context.Context, project, id uuid.UUID, e archive.Encryption) (*Export, error) {
	out, err := s.openExport(ctx, project, id, e)
	if err != nil {
		return nil, err
	}

	if err := s.inTx(ctx, func(*store) error { return nil }); err != nil {
		out.Close()
		return nil, err
	}

	return out, nil
}

func (s *Service) openExport(ctx context.Context, project, id uuid.UUID, e archive.Encryption) (*Export, error) {
	recipient, err := archive.NewRecipient(e, &s.passphrases)
	if err != nil {
		return nil, err
	}

	b, err := s.Get(ctx, project, id)
	if err != nil {
		return nil, err
	}

	if err := checkCompleted(b); err != nil {
		return nil, err
	}

	manifest, err := s.readManifest(ctx, project, id)
	if err != nil {
		return nil, err
	}

	w, err := archive.NewWriter(manifest, recipient)
	if err != nil {
		manifest.Files.Close()
		return nil, err
	}

	return &Export{s, w, manifest}, nil
}

// Encrypted reports whether the archive is encrypted.
func (e *Export) Encrypted() bool { return e.writer.Encrypted() }

// At returns the backup's snapshot time.
func (e *Export) At() time.Time { return e.manifest.At }

// Close releases the export.
func (e *Export) Close() { e.manifest.Files.Close() }

// Write writes the archive and verifies its contents on the way. It calls begin with the size in
// bytes before it writes the first byte.
func (e *Export) Write(ctx context.Context, to io.Writer, begin func(size int64)) error {
	return e.writer.Write(to, begin, func(p archive.Part, read func(io.Reader) error) error {
		if err := ctx.Err(); err != nil {
			return err
		}

		key := contentKey(e.manifest.Project, p.SHA256)
		if p.Dump {
			key = DumpKey(e.manifest.Project, e.manifest.Backup)
		}

		return e.service.readPart(ctx, key, read)
	})
}

// Recipient returns this install's public key. Only this install can import a backup encrypted for
// it.
func (s *Service) Recipient() (string, error) { return s.encryptionKey().Recipient() }
