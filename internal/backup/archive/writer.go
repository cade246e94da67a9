package archive

import (
	"archive/tar"
	"bufio"
	"io"
	"time"

	"filippo.io/age"
)

// Names of the entries of an archive.
const (
	manifestName = "manifest.json"
	dumpName     = "database.dump"
	filesName    = "files/" // followed by the SHA-256
)

const tarBlock = 512

func (p Part) entryName() string {
	if p.Dump {
		return dumpName
	}
	return filesName + p.SHA256
}

// Writer writes a backup as an archive.
type Writer struct {
	manifest     Manifest      // as in the archive
	manifestSize int64         // bytes
	recipient    age.Recipient // nil: not encrypted
}

// NewWriter returns the writer of a backup, by its stored manifest, for a recipient or, if it is
// nil, not encrypted. The manifest's Files stay open while the writer is in use.
func NewWriter(stored Manifest, recipient age.Recipient) (*Writer, error) {
	w := &Writer{manifest: stored.export(), recipient: recipient}
	text := w.manifest.JSON()
	defer text.Close()

	var err error
	w.manifestSize, err = io.Copy(io.Discard, text)
	return w, err
}

// Encrypted reports whether the archive is encrypted.
func (w *Writer) Encrypted() bool { return w.recipient != nil }

// Write writes the archive. It calls begin with the size in bytes before it writes the first byte,
// and open for each part, which passes the part's plain bytes to read. It fails unless these are
// those of the manifest.
func (w *Writer) Write(
	to io.Writer, begin func(size int64), open func(p Part, read func(io.Reader) error) error,
) error {
	size, err := w.size()
	if err != nil {
		return err
	}

	if w.recipient == nil {
		begin(size)
		return w.write(to, open)
	}

	// The buffer has room for the header, so that begin is called before the first byte is written.
	out := &countingWriter{w: bufio.NewWriterSize(to, chunk)}
	sealed, err := age.Encrypt(out, w.recipient)
	if err != nil {
		return err
	}

	begin(out.n + size + max(1, (size+chunk-1)/chunk)*tag)
	if err := w.write(sealed, open); err != nil {
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
func (w *Writer) size() (int64, error) {
	all := tarSize(w.manifestSize) + 2*tarBlock
	for p, err := range w.manifest.parts() {
		if err != nil {
			return 0, err
		}
		all += tarSize(p.Size)
	}

	return all, nil
}

func tarSize(n int64) int64 { return tarBlock + (n+tarBlock-1)/tarBlock*tarBlock }

func (w *Writer) write(to io.Writer, open func(Part, func(io.Reader) error) error) error {
	t := tar.NewWriter(to)
	text := w.manifest.JSON()
	err := put(t, manifestName, w.manifestSize, w.manifest.At, text)
	if text.Close(); err != nil {
		return err
	}

	for p, err := range w.manifest.parts() {
		if err != nil {
			return err
		}

		if err := open(p, func(r io.Reader) error {
			return put(t, p.entryName(), p.Size, w.manifest.At, Verify(r, p.Digest))
		}); err != nil {
			return err
		}
	}

	return t.Close()
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
