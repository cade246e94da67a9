package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/tenant"
)

// errDeleted says that a file was deleted after the snapshot had shown it.
var errDeleted = errors.New("a file was deleted while the backup was made")

// keepFiles copies the bytes of files to where the project's backups have them, each content once. What another backup has copied is
// there already. Which contents this one needs is noted before, so that nobody removes them.
func (m *Maker) keepFiles(ctx context.Context, manifest Manifest) error {
	if _, err := m.Store.NoteBackupContents(ctx, manifest.Project, manifest.Backup, manifest.Files.sums()); err != nil {
		return err
	}
	for f, err := range manifest.Files.all() {
		if err == nil {
			err = m.keepFile(ctx, manifest.Project, f)
		}
		if err != nil {
			return fmt.Errorf("blob %s: %w", f.Blob, err)
		}
	}
	return nil
}

// keepFile copies the bytes of a file unless they are there.
func (m *Maker) keepFile(ctx context.Context, project uuid.UUID, f content) error {
	name := contentKey(project, f.SHA256)
	there, err := m.isKept(ctx, name, f.Size)
	if err != nil || there {
		return err
	}
	bytes, _, err := m.Blobs.Open(ctx, tenant.FileKey(project, f.Blob))
	if fault.Is(err, fault.NotFound) {
		return errors.Join(errDeleted, err)
	}
	if err != nil {
		return err
	}
	defer bytes.Close()
	sealed := m.key().encrypted(&exact{r: bytes, sum: summed{hash: sha256.New()}, want: f.Bytes})
	defer sealed.Close()
	_, err = m.Blobs.Put(ctx, name, sealed, math.MaxInt64)
	if fault.Is(err, fault.Conflict) {
		return nil // a worker that was given up has copied it after all
	}
	return err
}

// isKept reports whether a content of n bytes is there. One of another size is damaged, and is removed.
func (m *Maker) isKept(ctx context.Context, name string, n int64) (bool, error) {
	stored, got, err := m.Blobs.Open(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	want, err := m.key().sizeOf(n)
	if err := errors.Join(err, stored.Close()); err != nil {
		return false, err
	}
	if got == want {
		return true, nil
	}
	return false, m.Blobs.Delete(ctx, name)
}

// errInexact says that bytes are not those that the database says they are.
var errInexact = fault.New(fault.Unprocessable, "the bytes of a file are not those that were stored")

// exact reads r, and fails at its end unless that were the bytes wanted.
type exact struct {
	r    io.Reader
	sum  summed
	want Bytes
}

func (e *exact) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	_, _ = e.sum.Write(b[:n])
	if err == io.EOF && e.sum.bytes() != e.want {
		err = fmt.Errorf("%w: got %v, want %v", errInexact, e.sum.bytes(), e.want)
	}
	return n, err
}

// Discard removes what is kept of a backup, and the contents of files that no other backup of the project needs. That nothing is kept is no error.
func (m *Maker) Discard(ctx context.Context, project, backup uuid.UUID) error {
	if err := errors.Join(m.Blobs.Delete(ctx, manifestKey(project, backup)), m.Blobs.Delete(ctx, Key(project, backup))); err != nil {
		return err
	}
	return m.Store.ForgetBackupContents(ctx, project, backup, func(sum []byte) error {
		return m.Blobs.Delete(ctx, contentKey(project, hex.EncodeToString(sum)))
	})
}
