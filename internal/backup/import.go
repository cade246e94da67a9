package backup

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
)

// Import is an uploaded archive.
type Import struct {
	Reader     io.Reader
	Passphrase string // empty unless the archive is encrypted with one
	MaxBytes   int64  // limit in bytes of the decrypted content
}

const maxPadding = 64 << 10 // bytes after the end of the tar

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
	damage := errors.Is(err, errDamaged) || errors.Is(err, pgtool.ErrTOC) || errors.Is(err, errContentMismatch) ||
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

// maxArchiveSize returns the maximum size of an archive that holds n bytes, including headers and
// encryption.
func maxArchiveSize(n int64) int64 {
	if n > math.MaxInt64/4 {
		return math.MaxInt64
	}
	return 2*n + maxManifestRest
}

// readArchiveManifest reads the manifest at the start of an archive and returns its size in bytes.
func readArchiveManifest(t *tar.Reader) (Manifest, int64, error) {
	var manifest Manifest
	h, err := t.Next()
	if err != nil {
		return manifest, 0, asArchiveError(err)
	}

	if h.Name != manifestName || h.Typeflag != tar.TypeReg || h.Size > maxManifestSize {
		return manifest, 0, errArchive
	}

	if manifest, err = parseManifest(t, maxManifestRest); err != nil {
		return manifest, 0, asArchiveError(err)
	}

	return manifest, h.Size, manifest.validate()
}

// asArchiveError converts an error of package tar to errArchive, but not a read error of its
// source.
func asArchiveError(err error) error {
	if e := fault.Of(err); e.Kind != fault.Internal || errors.Is(err, errDamaged) {
		return err
	}
	return errArchive.WithCause(err)
}

// parseManifest reads a manifest. most limits its size in bytes, not counting the contents of
// files. It fails with Unprocessable if the format is newer than this release.
func parseManifest(r io.Reader, most int64) (Manifest, error) {
	tooLarge := fmt.Errorf("%w: the manifest has more than %d bytes", errDamaged, most)
	rest := &limitedReader{r: r, left: most, err: tooLarge}
	found := Manifest{Files: &Contents{budget: rest}}
	err := json.UnmarshalRead(rest, &found)
	if found.Files == nil { // null in the text
		found.Files = &Contents{}
	}

	found.Files.budget = nil

	switch {
	case found.Format > Format:
		err = errNewer
	case err != nil && rest.readErr != nil:
		err = rest.readErr
	case err != nil:
		err = errors.Join(errDamaged, err)
	}

	if err != nil {
		found.Files.Close()
	}

	return found, err
}

// databaseName matches names of projects' databases, see [projectdb.Names].
var databaseName = regexp.MustCompile(`^socle_[0-9a-f]{32}$`)

// validate fails unless a release could have written the manifest, which may be untrusted.
func (m Manifest) validate() error {
	for f, err := range m.Files.followedBy(m.Dump) {
		if err != nil {
			return err
		}

		if f.Size < 0 || len(f.SHA256) != 2*sha256.Size || strings.Trim(f.SHA256, "0123456789abcdef") != "" {
			return errArchive.WithCause(fmt.Errorf("invalid content in the manifest: %v", f))
		}
	}

	if m.Format < firstFormat || m.Schema < 1 || m.PostgreSQL < 1 || m.Project == uuid.Nil ||
		m.At.After(time.Now().AddDate(1, 0, 0)) {
		return errArchive.WithCause(errors.New("invalid manifest"))
	}
	if m.Database != "" && !databaseName.MatchString(m.Database) {
		return errArchive.WithCause(fmt.Errorf("invalid database name in the manifest: %q", m.Database))
	}

	return nil
}

// nextEntry returns the content of the next entry, which must have the name and size wanted.
func nextEntry(t *tar.Reader, name string, want Digest) (io.Reader, error) {
	h, err := t.Next()
	if err != nil {
		return nil, asArchiveError(err)
	}

	if h.Name != name || h.Typeflag != tar.TypeReg || h.Size != want.Size {
		return nil, errArchive.WithCause(
			fmt.Errorf("got entry %q of %d bytes, want %q of %d", h.Name, h.Size, name, want.Size),
		)
	}

	return newVerifyingReader(t, want), nil
}

// putEncrypted stores the content of r, encrypted. When it returns, r is no longer read.
func (s *Service) putEncrypted(ctx context.Context, name string, r io.Reader) (blob.Object, error) {
	sealed := s.key().encrypt(r)
	object, err := s.blobs.Put(ctx, name, sealed, math.MaxInt64)
	sealed.Close()
	<-sealed.done

	return object, err
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

// checkEnd fails unless the archive is at its end.
func checkEnd(t *tar.Reader, plain io.Reader) error {
	if _, err := t.Next(); err != io.EOF {
		if err == nil {
			err = errors.New("more entries than in the manifest")
		}
		return asArchiveError(err)
	}

	n, err := io.Copy(io.Discard, io.LimitReader(plain, maxPadding+1))
	if err == nil && n > maxPadding {
		err = errArchive
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
