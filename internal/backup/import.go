package backup

import (
	"context"
	"errors"
	"io"
	"os/exec"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pgdump"
)

// Import is an uploaded archive.
type Import struct {
	Reader     io.Reader
	Passphrase string // empty unless the archive is encrypted with one
	MaxBytes   int64  // limit for the decrypted content
}

// Import reads an archive and stores it as the backup b, which startImport created. complete
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

	// The backup is complete after all, has been abandoned, or is in an unknown state: the cleanup
	// for abandoned tasks takes over.
	if e := s.backupTasks().heartbeat(cleanupCtx, b.UUID); e != nil {
		return errors.Join(err, fault.Ignore(e, fault.NotFound))
	}
	if e := s.Discard(cleanupCtx, b.ProjectUUID, b.UUID); e != nil {
		return errors.Join(err, e)
	}

	return errors.Join(err, s.forgetImport(cleanupCtx, b.UUID))
}

// receive stores the archive. It fails with [archive.Invalid] also for an invalid dump.
func (s *Service) receive(ctx context.Context, b Backup, in Import) (blob.Object, error) {
	object, err := s.unpack(ctx, b, in)
	_, isExit := errors.AsType[*exec.ExitError](err)
	damage := errors.Is(err, archive.ErrDamaged) || errors.Is(err, pgdump.ErrTOC) ||
		errors.Is(err, io.ErrUnexpectedEOF) || isExit
	if damage && fault.Is(err, fault.Internal) {
		return object, archive.Invalid(err)
	}

	return object, err
}

func (s *Service) unpack(ctx context.Context, b Backup, in Import) (blob.Object, error) {
	none := blob.Object{}
	from, err := archive.NewReader(in.Reader, archive.ReaderConfig{
		Key:         s.encryptionKey(),
		Passphrase:  in.Passphrase,
		Passphrases: &s.passphrases,
		MaxBytes:    in.MaxBytes,
	})
	if err != nil {
		return none, err
	}
	defer from.Close()

	manifest := from.Manifest.Import(b.ProjectUUID, b.UUID)
	if err := s.checkRestorable(ctx, manifest); err != nil {
		return none, err
	}

	count, err := s.addContents(ctx, b.ProjectUUID, b.UUID, manifest.Files.Sums())
	if err == nil && count != manifest.Files.Len() {
		err = archive.Invalid(errors.New("the manifest lists a content twice"))
	}
	if err != nil {
		return none, err
	}

	var dump blob.Object
	if err := from.Each(func(p archive.Part, r io.Reader) (err error) {
		if p.Dump {
			dump, err = s.putPart(ctx, DumpKey(b.ProjectUUID, b.UUID), r)
			return err
		}

		return s.storeContent(ctx, b.ProjectUUID, p.Digest, r)
	}); err != nil {
		return none, err
	}

	entries, err := s.verifyDump(ctx, manifest)
	if err != nil {
		return none, err
	}

	if _, err := planRestore(entries, manifest, s.projects.OwnerLogin(b.ProjectUUID)); err != nil {
		return none, err
	}

	return dump, s.putManifest(ctx, manifest)
}

// storeContent stores a content. It does not read r if the project's backups have it already.
func (s *Service) storeContent(ctx context.Context, project uuid.UUID, d archive.Digest, r io.Reader) error {
	key := contentKey(project, d.SHA256)
	ok, err := s.hasPart(ctx, key, d.Size)
	if err != nil || ok {
		return err
	}

	_, err = s.putPart(ctx, key, r)
	return fault.Ignore(err, fault.Conflict) // a concurrent backup has stored it
}

// ImportArchive stores an uploaded archive as a project backup and enqueues a proof. It fails like
// [store.startImport] and [Service.Import].
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
