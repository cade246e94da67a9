package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
)

// A project's backup parts are in one folder, with the shared contents in a subfolder.
const (
	dumpSuffix     = ".dump"
	manifestSuffix = ".manifest"
	contentFolder  = "content/"
)

func partsFolder(project uuid.UUID) string { return "projects/" + project.String() + "/backups/" }

// DumpKey returns the blob key for a backup's dump.
func DumpKey(project, backup uuid.UUID) string {
	return partsFolder(project) + backup.String() + dumpSuffix
}

func manifestKey(project, backup uuid.UUID) string {
	return partsFolder(project) + backup.String() + manifestSuffix
}

func contentKey(project uuid.UUID, sum string) string {
	return partsFolder(project) + contentFolder + sum
}

// encryptionKey returns the key for all stored parts.
func (s *Service) encryptionKey() archive.Key { return s.projects.BackupKey() }

// putManifest stores a manifest beside its dump.
func (s *Service) putManifest(ctx context.Context, manifest archive.Manifest) error {
	text := manifest.JSON()
	defer text.Close()

	encrypter := s.encryptionKey().Encrypt(text)
	defer encrypter.Close()

	_, err := s.blobs.Put(ctx, manifestKey(manifest.Project, manifest.Backup), encrypter, 2*archive.MaxManifestSize)
	return err
}

// readManifest reads a backup's manifest. The caller closes its Files. It fails with
// [archive.ErrDamaged] if it belongs to another backup, and with Unprocessable if its format is
// newer.
func (s *Service) readManifest(ctx context.Context, project, backup uuid.UUID) (archive.Manifest, error) {
	var m archive.Manifest
	err := s.readPart(ctx, manifestKey(project, backup), func(r io.Reader) error {
		var err error
		if m, err = archive.ReadManifest(r); err != nil {
			return err
		}

		if m.Project != project || m.Backup != backup {
			return fmt.Errorf("%w: the manifest belongs to backup %s", archive.ErrDamaged, m.Backup)
		}

		return nil
	})

	return m, err
}

// putPart stores r, encrypted. When it returns, nothing reads r any more.
func (s *Service) putPart(ctx context.Context, key string, r io.Reader) (blob.Object, error) {
	encrypter := s.encryptionKey().Encrypt(r)
	object, err := s.blobs.Put(ctx, key, encrypter, math.MaxInt64)
	encrypter.Close()
	encrypter.Wait()

	return object, err
}

// readPart passes the decrypted blob under a key to read. A missing blob is damage.
func (s *Service) readPart(ctx context.Context, key string, read func(io.Reader) error) error {
	in, _, err := s.blobs.Open(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return errors.Join(archive.ErrDamaged, err)
	}
	if err != nil {
		return err
	}

	defer in.Close()

	plain, err := s.encryptionKey().Decrypt(in)
	if err != nil {
		return err
	}

	return read(plain)
}

// hasPart reports whether n bytes are stored under a key. It removes a part with another size,
// which is damaged.
func (s *Service) hasPart(ctx context.Context, key string, n int64) (bool, error) {
	in, got, err := s.blobs.Open(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	want, err := s.encryptionKey().EncryptedSize(n)
	if err := errors.Join(err, in.Close()); err != nil {
		return false, err
	}

	if got == want {
		return true, nil
	}

	return false, s.blobs.Delete(ctx, key)
}
