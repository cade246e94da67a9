package archive

import (
	"archive/tar"
	"bufio"
	"io"
	"time"

	"filippo.io/age"
)

// Entry names in an archive.
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
	manifest     Manifest      // for the archive
	manifestSize int64         // bytes
	recipient    age.Recipient // nil: not encrypted
}

// NewWriter returns a writer for the backup with a stored manifest. The archive is encrypted unless
// recipient is nil. The caller keeps the manifest's Files open while it uses the writer.
func NewWriter(m Manifest, recipient age.Recipient) (*Writer, error) {
	w := &Writer{manifest: m.export(), recipient: recipient}
	text := w.manifest.JSON()
	defer text.Close()

	var err error
	w.manifestSize, err = io.Copy(io.Discard, text)
	return w, err
}

// Encrypted reports whether the archive is encrypted.
func (w *Writer) Encrypted() bool { return w.recipient != nil }

// Write writes the archive. It calls begin with the size in bytes before it writes the first byte,
// and open for each part, which passes the part's plain bytes to read. It fails unless these match
// the manifest.
func (w *Writer) Write(
	to io.Writer, begin func(size int64), open func(p Part, read func(io.Reader) error) error,
) error {
	size, err := w.size()
	if err != nil {
		return err
	}

	if w.recipient == nil {
		begin(size)
		return w.writeTar(to, open)
	}

	// The buffer has room for the header, so that begin is called before the first byte is written.
	out := &countingWriter{w: bufio.NewWriterSize(to, chunk)}
	encrypter, err := age.Encrypt(out, w.recipient)
	if err != nil {
		return err
	}

	begin(out.n + size + max(1, (size+chunk-1)/chunk)*tag)
	if err := w.writeTar(encrypter, open); err != nil {
		return err
	}
	if err := encrypter.Close(); err != nil {
		return err
	}

	return out.w.Flush()
}

// countingWriter counts bytes before the buffer writes them.
type countingWriter struct {
	w *bufio.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return c.w.Write(b)
}

// size returns the archive's size in bytes before encryption.
func (w *Writer) size() (int64, error) {
	size := tarSize(w.manifestSize) + 2*tarBlock
	for p, err := range w.manifest.parts() {
		if err != nil {
			return 0, err
		}
		size += tarSize(p.Size)
	}

	return size, nil
}

func tarSize(n int64) int64 { return tarBlock + (n+tarBlock-1)/tarBlock*tarBlock }

func (w *Writer) writeTar(to io.Writer, open func(Part, func(io.Reader) error) error) error {
	t := tar.NewWriter(to)
	text := w.manifest.JSON()
	err := writeEntry(t, manifestName, w.manifestSize, w.manifest.At, text)
	if text.Close(); err != nil {
		return err
	}

	for p, err := range w.manifest.parts() {
		if err != nil {
			return err
		}

		if err := open(p, func(r io.Reader) error {
			return writeEntry(t, p.entryName(), p.Size, w.manifest.At, Verify(r, p.Digest))
		}); err != nil {
			return err
		}
	}

	return t.Close()
}

func writeEntry(t *tar.Writer, name string, size int64, at time.Time, r io.Reader) error {
	// In the GNU format a header with one of our names takes one block, whatever the size.
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
