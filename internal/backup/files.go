package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/projectdb"
)

// errFileDeleted reports that a file in the snapshot has been deleted since.
var errFileDeleted = errors.New("a file was deleted during the backup")

// copyFiles copies file contents to the project's backup storage, each once. It reuses contents
// that another backup has copied. It records the required contents first, so that cleaning up other
// backups keeps them.
func (s *Service) copyFiles(ctx context.Context, manifest archive.Manifest) error {
	if _, err := s.addContents(ctx, manifest.Project, manifest.Backup, manifest.Files.Sums()); err != nil {
		return err
	}

	for f, err := range manifest.Files.All() {
		if err == nil {
			err = s.copyFile(ctx, manifest.Project, f)
		}
		if err != nil {
			return s.withFileName(ctx, manifest.Project, f, err)
		}
	}

	return nil
}

// withFileName adds the file name to an error from copying a content, if the bytes are missing or
// wrong. Only then can the user fix the file, without which no backup succeeds.
func (s *Service) withFileName(ctx context.Context, project uuid.UUID, f archive.Content, failure error) error {
	failure = fmt.Errorf("copy blob %s: %w", f.Blob, failure)
	if !errors.Is(failure, errFileDeleted) && !errors.Is(failure, archive.ErrMismatch) {
		return failure
	}

	name, err := s.files.NameOfBlob(ctx, s.projects.Open(project), f.Blob)
	if err != nil { // the file was deleted
		return failure
	}

	return fault.New(fault.Unprocessable,
		"the bytes of the file %s are missing or damaged: upload it again, or delete it",
		name).WithCause(failure)
}

// copyFile copies a file's content unless it is already stored.
func (s *Service) copyFile(ctx context.Context, project uuid.UUID, f archive.Content) error {
	key := contentKey(project, f.SHA256)
	ok, err := s.hasPart(ctx, key, f.Size)
	if err != nil || ok {
		return err
	}

	err = s.readFile(ctx, project, f, func(r io.Reader) error {
		_, err := s.putPart(ctx, key, r)
		return err
	})

	return fault.Ignore(err, fault.Conflict) // a worker that lost its task copied it concurrently
}

// readFile passes a file's bytes to read. The reader fails at its end unless they match the
// content's size and checksum.
func (s *Service) readFile(
	ctx context.Context, project uuid.UUID, f archive.Content, read func(io.Reader) error,
) error {
	bytes, _, err := s.blobs.Open(ctx, projectdb.FileKey(project, f.Blob))
	if fault.Is(err, fault.NotFound) {
		return errors.Join(errFileDeleted, err)
	}
	if err != nil {
		return err
	}

	defer bytes.Close()

	return read(archive.Verify(bytes, f.Digest))
}

// verifyContent reads a stored content and fails unless its size and checksum match.
func (s *Service) verifyContent(ctx context.Context, project uuid.UUID, want archive.Digest) error {
	sum := archive.NewHasher()
	err := s.readPart(ctx, contentKey(project, want.SHA256), func(r io.Reader) error {
		_, err := io.Copy(sum, r)
		return err
	})
	if err == nil && sum.Digest() != want {
		err = archive.ErrDamaged
	}

	return err
}

// repairContent replaces a damaged content from a file in the project with the same content, and
// reports whether it did. That repairs all backups that need it. Later backups would reuse the
// damaged content otherwise.
func (s *Service) repairContent(ctx context.Context, project uuid.UUID, digest archive.Digest, damage error) bool {
	err := s.replaceContent(ctx, project, digest)
	if err != nil {
		s.Log.Error("damaged content of backups cannot be repaired", "project", project,
			"content", digest.SHA256, "damage", damage, "error", err)
		return false
	}

	s.Log.Warn("damaged content of backups repaired from a file", "project", project,
		"content", digest.SHA256, "damage", damage)

	return true
}

// replaceContent copies a content again from a file in the project.
func (s *Service) replaceContent(ctx context.Context, project uuid.UUID, digest archive.Digest) error {
	sum, err := hex.DecodeString(digest.SHA256)
	if err != nil {
		return err
	}

	f := archive.Content{Digest: digest}
	if f.Blob, err = s.files.BlobOfContent(ctx, s.projects.Open(project), digest.Size, sum); err != nil {
		return err
	}

	// Check the source before the damaged copy is deleted.
	if err := s.readFile(ctx, project, f, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}); err != nil {
		return err
	}

	if err := s.blobs.Delete(ctx, contentKey(project, digest.SHA256)); err != nil {
		return err
	}

	return s.copyFile(ctx, project, f)
}

// Discard removes a backup's blobs, and the contents that none of the project's other backups
// needs. Missing blobs are no error.
func (s *Service) Discard(ctx context.Context, project, backup uuid.UUID) error {
	if err := errors.Join(s.blobs.Delete(ctx, manifestKey(project, backup)),
		s.blobs.Delete(ctx, DumpKey(project, backup))); err != nil {
		return err
	}

	return s.deleteContents(ctx, project, backup, func(sum []byte) error {
		return s.blobs.Delete(ctx, contentKey(project, hex.EncodeToString(sum)))
	})
}
