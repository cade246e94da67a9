package backup

import (
	"archive/tar"
	"bufio"
	"context"
	"io"
	"time"

	"filippo.io/age"
	"github.com/go-json-experiment/json"
)

// An archive is a backup in one file: a tar of the manifest, the dump, and the contents of the
// files in manifest order. It can be encrypted in the age format.
const (
	manifestName = "manifest.json"
	dumpName     = "database.dump"
	filesName    = "files/" // followed by the SHA-256
	tarBlock     = 512
)

// Archive is a backup being exported.
type Archive struct {
	Manifest Manifest

	service      *Service
	stored       Manifest      // as stored by this install
	manifestSize int64         // size of the manifest in bytes
	recipient    age.Recipient // nil: not encrypted
}

// Close releases the archive.
func (a *Archive) Close() { a.Manifest.Files.Close() }

// Encrypted reports whether the archive is encrypted.
func (a *Archive) Encrypted() bool { return a.recipient != nil }

// Write writes the archive and verifies its contents on the way. It calls begin with the size in
// bytes before it writes the first byte.
func (a *Archive) Write(ctx context.Context, w io.Writer, begin func(size int64)) error {
	size, err := a.size()
	if err != nil {
		return err
	}

	if a.recipient == nil {
		begin(size)
		return a.write(ctx, w)
	}

	out := &countingWriter{w: bufio.NewWriterSize(w, chunk)} // large enough for the header that precedes the contents
	sealed, err := age.Encrypt(out, a.recipient)
	if err != nil {
		return err
	}

	begin(out.n + size + max(1, (size+chunk-1)/chunk)*tag)
	if err := a.write(ctx, sealed); err != nil {
		return err
	}
	if err := sealed.Close(); err != nil {
		return err
	}

	return out.w.Flush()
}

// countingWriter counts the bytes written.
type countingWriter struct {
	w *bufio.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return c.w.Write(b)
}

// size returns the size in bytes of the archive before encryption.
func (a *Archive) size() (int64, error) {
	all := tarSize(a.manifestSize) + tarSize(a.Manifest.Dump.Size) + 2*tarBlock
	for f, err := range a.Manifest.Files.all() {
		if err != nil {
			return 0, err
		}
		all += tarSize(f.Size)
	}

	return all, nil
}

func tarSize(n int64) int64 { return tarBlock + (n+tarBlock-1)/tarBlock*tarBlock }

func (a *Archive) write(ctx context.Context, w io.Writer) error {
	t := tar.NewWriter(w)
	out, in := io.Pipe()
	go func() { in.CloseWithError(json.MarshalWrite(in, a.Manifest)) }()

	err := put(t, manifestName, a.manifestSize, a.Manifest.At, out)
	if out.Close(); err != nil {
		return err
	}

	if err := a.put(ctx, t, dumpName, DumpKey(a.stored.Project, a.stored.Backup), a.Manifest.Dump); err != nil {
		return err
	}

	for f, err := range a.Manifest.Files.all() {
		if err == nil {
			err = a.put(ctx, t, filesName+f.SHA256, contentKey(a.stored.Project, f.SHA256), f.Digest)
		}
		if err != nil {
			return err
		}
	}

	return t.Close()
}

// put adds the blob stored under a key and verifies its size and checksum.
func (a *Archive) put(ctx context.Context, t *tar.Writer, name, key string, want Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	return a.service.readBlob(ctx, key, func(r io.Reader) error {
		return put(t, name, want.Size, a.Manifest.At, newVerifyingReader(r, want))
	})
}

func put(t *tar.Writer, name string, size int64, at time.Time, r io.Reader) error {
	// In the GNU format the header of one of our names takes one block, whatever the size.
	if err := t.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Size:     size,
		Mode:     0o600,
		ModTime:  at.Truncate(time.Second),
		Format:   tar.FormatGNU,
	}); err != nil {
		return err
	}

	_, err := io.Copy(t, r)
	return err
}
