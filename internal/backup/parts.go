package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
)

func (s *Service) key() key { return s.projects.BackupKey() }

// DumpKey returns the blob key of a backup's dump.
func DumpKey(project, backup uuid.UUID) string {
	return "projects/" + project.String() + "/backups/" + backup.String() + ".dump"
}

func manifestKey(project, backup uuid.UUID) string {
	return "projects/" + project.String() + "/backups/" + backup.String() + ".manifest"
}

func contentKey(project uuid.UUID, sum string) string {
	return "projects/" + project.String() + "/backups/content/" + sum
}

// putManifest stores a manifest beside its dump.
func (s *Service) putManifest(ctx context.Context, manifest Manifest) error {
	out, in := io.Pipe()
	go func() { in.CloseWithError(json.MarshalWrite(in, manifest)) }()

	defer out.Close()

	sealed := s.key().encrypt(out)
	defer sealed.Close()

	_, err := s.blobs.Put(ctx, manifestKey(manifest.Project, manifest.Backup), sealed, 2*maxManifestSize)
	return err
}

// readManifest reads the manifest of a backup. It fails with errDamaged if it belongs to another
// backup, and with Unprocessable if its format is newer.
func (s *Service) readManifest(ctx context.Context, project, backup uuid.UUID) (Manifest, error) {
	var found Manifest
	err := s.readBlob(ctx, manifestKey(project, backup), func(r io.Reader) error {
		var err error
		if found, err = parseManifest(r, maxManifestSize); err != nil {
			return err
		}

		if found.Project != project || found.Backup != backup {
			return fmt.Errorf("%w: the manifest belongs to backup %s", errDamaged, found.Backup)
		}

		return nil
	})

	return found, err
}

// readBlob passes the decrypted blob under a key to read. A missing blob is damage.
func (s *Service) readBlob(ctx context.Context, name string, read func(io.Reader) error) error {
	stored, _, err := s.blobs.Open(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return errors.Join(errDamaged, err)
	}
	if err != nil {
		return err
	}

	defer stored.Close()

	plain, err := s.key().decrypt(stored)
	if err != nil {
		return err
	}

	return read(plain)
}

// putEncrypted stores the content of r, encrypted. When it returns, r is no longer read.
func (s *Service) putEncrypted(ctx context.Context, name string, r io.Reader) (blob.Object, error) {
	sealed := s.key().encrypt(r)
	object, err := s.blobs.Put(ctx, name, sealed, math.MaxInt64)
	sealed.Close()
	<-sealed.done

	return object, err
}

// isStored reports whether a content of n bytes is stored. It removes one of another size, which is
// damaged.
func (s *Service) isStored(ctx context.Context, name string, n int64) (bool, error) {
	stored, got, err := s.blobs.Open(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	want, err := s.key().sizeOf(n)
	if err := errors.Join(err, stored.Close()); err != nil {
		return false, err
	}

	if got == want {
		return true, nil
	}

	return false, s.blobs.Delete(ctx, name)
}
