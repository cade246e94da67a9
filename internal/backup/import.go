package backup

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pgdump"
)

// Import is an uploaded archive.
type Import struct {
	Reader     io.Reader
	Passphrase string // empty unless the archive is encrypted with one
	MaxBytes   int64  // limit in bytes of the decrypted content
}

// Import reads an archive and stores it as a backup of a project, created by StartImport. complete
// completes the backup in the database. If Import fails, it leaves nothing behind. It fails with
// Unprocessable if this install cannot read or restore the archive, and with TooLarge.
//
// The archive is untrusted. Its entries are stored only under names derived from the manifest, and
// nothing in it is executed.
func (s *Service) Import(
	ctx context.Context, b Backup, in Import, complete func(context.Context, blob.Object) error,
) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	go s.heartbeat(ctx, stop, func(ctx context.Context) error { return s.backupTasks().heartbeat(ctx, b.UUID) })

	object, err := s.receive(ctx, b, in)
	if err == nil {
		err = complete(ctx, object)
	}
	if err == nil {
		return nil
	}

	cleanupCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()

	// the backup is complete after all, has been abandoned, or its state is unknown: the cleanup of
	// abandoned tasks takes over
	if e := s.backupTasks().heartbeat(cleanupCtx, b.UUID); e != nil {
		return errors.Join(err, fault.Ignore(e, fault.NotFound))
	}
	if e := s.Discard(cleanupCtx, b.ProjectUUID, b.UUID); e != nil {
		return errors.Join(err, e)
	}

	return errors.Join(err, s.forgetImport(cleanupCtx, b.UUID))
}

// receive stores the archive, and converts errors of its format to errArchive.
func (s *Service) receive(ctx context.Context, b Backup, in Import) (blob.Object, error) {
	object, err := s.unpack(ctx, b, in)
	_, exited := errors.AsType[*exec.ExitError](err)
	damage := errors.Is(err, errDamaged) || errors.Is(err, pgdump.ErrTOC) || errors.Is(err, errContentMismatch) ||
		errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || exited
	if e := fault.Of(err); e != nil && damage && (e.Kind == fault.Internal || errors.Is(err, errContentMismatch)) {
		return object, errArchive.WithCause(err)
	}

	return object, err
}

func (s *Service) unpack(ctx context.Context, b Backup, in Import) (blob.Object, error) {
	none := blob.Object{}
	tooLarge := fault.OnField(fault.TooLarge, "file", "too_large", "must hold at most %d bytes", in.MaxBytes)
	from := bufio.NewReaderSize(&limitedReader{r: in.Reader, left: maxArchiveSize(in.MaxBytes), err: tooLarge}, chunk)
	plain := io.Reader(from)
	if head, _ := from.Peek(len(agePrefix)); string(head) == agePrefix {
		var err error
		if plain, err = s.decryptArchive(from, in.Passphrase); err != nil {
			return none, err
		}
	}

	t := tar.NewReader(plain)
	manifest, size, err := readArchiveManifest(t)
	if err != nil {
		return none, err
	}
	defer manifest.Files.Close()

	for f, err := range manifest.Files.followedBy(manifest.Dump) {
		if err != nil {
			return none, err
		}

		if f.Size > in.MaxBytes-size {
			return none, tooLarge
		}

		size += f.Size
	}

	manifest.Source, manifest.Project, manifest.Backup, manifest.Format = manifest.Project, b.ProjectUUID, b.UUID,
		max(manifest.Format, extensionsFormat)
	if err := s.checkRestorable(ctx, manifest); err != nil {
		return none, err
	}

	noted, err := s.addContents(ctx, b.ProjectUUID, b.UUID, manifest.Files.sums())
	if err == nil && noted != manifest.Files.Len() {
		err = errArchive.WithCause(errors.New("the manifest lists a content twice"))
	}
	if err != nil {
		return none, err
	}

	dump, err := nextEntry(t, dumpName, manifest.Dump)
	if err != nil {
		return none, err
	}

	object, err := s.putEncrypted(ctx, DumpKey(b.ProjectUUID, b.UUID), dump)
	if err != nil {
		return none, err
	}

	for f, err := range manifest.Files.all() {
		if err == nil {
			err = s.storeEntry(ctx, t, b.ProjectUUID, f.Digest)
		}
		if err != nil {
			return none, err
		}
	}

	if err := checkEnd(t, plain); err != nil {
		return none, err
	}

	entries, err := s.verifyDump(ctx, manifest)
	if err != nil {
		return none, err
	}

	if _, err := planRestore(entries, manifest, s.projects.OwnerLogin(b.ProjectUUID)); err != nil {
		return none, err
	}

	return object, s.putManifest(ctx, manifest)
}

// storeEntry stores the next entry, the content of a file. If the project's backups have it
// already, it reads the entry and discards it.
func (s *Service) storeEntry(ctx context.Context, t *tar.Reader, project uuid.UUID, f Digest) error {
	r, err := nextEntry(t, filesName+f.SHA256, f)
	if err != nil {
		return err
	}

	name := contentKey(project, f.SHA256)
	found, err := s.isStored(ctx, name, f.Size)
	if err != nil {
		return err
	}

	if found {
		_, err = io.Copy(io.Discard, r)
		return err
	}

	_, err = s.putEncrypted(ctx, name, r)
	if fault.Is(err, fault.Conflict) {
		return nil // a concurrent backup has stored it
	}

	return err
}

// ImportArchive stores an uploaded archive as a backup of a project and enqueues its proof. It
// fails like [store.startImport] and [Service.Import].
func (s *Service) ImportArchive(ctx context.Context, project, user uuid.UUID, in Import) (Backup, error) {
	b, err := s.startImport(ctx, project, user)
	if err != nil {
		return b, err
	}

	err = s.Import(ctx, b, in, func(ctx context.Context, o blob.Object) error {
		return s.inTx(ctx, func(tx *store) error {
			if err := tx.complete(ctx, b.UUID, o.Size, o.SHA256, nil); err != nil {
				return err
			}

			audit.CreatedUUID(ctx, b.UUID)
			if _, err := s.Queue.InsertTx(ctx, tx.tx(), proveArgs{Backup: b.UUID, Project: project}); err != nil {
				return err
			}

			var err error
			b, err = tx.Get(ctx, project, b.UUID)
			return err
		})
	})

	return b, err
}
