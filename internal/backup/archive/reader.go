package archive

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/socle-dev/socle/internal/fault"
)

// ReaderConfig configures a [Reader].
type ReaderConfig struct {
	Key         Key    // the install's key, which opens archives encrypted for its recipient
	Passphrase  string // empty unless the archive is encrypted with one
	Passphrases *Passphrases
	MaxBytes    int64 // limit for the manifest and all parts, decrypted
}

// Reader reads an untrusted archive.
//
// It fails with [Invalid] if the archive is at fault, and with Unprocessable on the field
// X-Passphrase if the archive needs another key. It returns the source's read errors as they are.
type Reader struct {
	Manifest Manifest // as in the archive

	source *limitedReader
	plain  io.Reader // decrypted
	tar    *tar.Reader
}

const maxPadding = 64 << 10 // bytes after the tar

// NewReader reads an archive up to the manifest's end and validates the manifest. The caller closes
// the reader. It fails with ErrNewer if the format is newer than this release, and with TooLarge,
// on the field file, if the archive would exceed MaxBytes.
func NewReader(from io.Reader, c ReaderConfig) (*Reader, error) {
	tooLarge := fault.OnField(fault.TooLarge, "file", "too_large", "must hold at most %d bytes", c.MaxBytes)
	r := &Reader{source: &limitedReader{r: from, remaining: maxSize(c.MaxBytes), err: tooLarge}}

	in := bufio.NewReaderSize(r.source, chunk)
	r.plain = in
	if head, _ := in.Peek(len(agePrefix)); string(head) == agePrefix {
		var err error
		if r.plain, err = c.decrypt(in); err != nil {
			return nil, r.asInvalid(err)
		}
	}

	r.tar = tar.NewReader(r.plain)
	size, err := r.readManifest()
	if err != nil {
		return nil, r.asInvalid(err)
	}

	for p, err := range r.Manifest.parts() {
		if err == nil && p.Size > c.MaxBytes-size {
			err = tooLarge
		}
		if err != nil {
			r.Close()
			return nil, err
		}

		size += p.Size
	}

	return r, nil
}

// Close releases the manifest.
func (r *Reader) Close() { r.Manifest.Files.Close() }

// maxSize returns the maximum archive size for n bytes, including headers and encryption.
func maxSize(n int64) int64 {
	if n > math.MaxInt64/4 {
		return math.MaxInt64
	}
	return 2*n + maxManifestRest
}

// asInvalid converts an error with [Invalid] unless it has a kind already, or comes from reading
// the source or a local file.
func (r *Reader) asInvalid(err error) error {
	sourceFailed := r.source.readErr != nil && errors.Is(err, r.source.readErr)
	hasKind := !fault.Is(err, fault.Internal) && !errors.Is(err, ErrMismatch)
	if err == nil || sourceFailed || hasKind || isLocal(err) {
		return err
	}

	return Invalid(err)
}

// readManifest reads and validates the first entry and returns its size in bytes.
func (r *Reader) readManifest() (int64, error) {
	h, err := r.tar.Next()
	if err != nil {
		return 0, err
	}

	if h.Name != manifestName || h.Typeflag != tar.TypeReg || h.Size > MaxManifestSize {
		return 0, fmt.Errorf("got entry %q of %d bytes, want %q", h.Name, h.Size, manifestName)
	}

	if r.Manifest, err = parseManifest(r.tar, maxManifestRest); err != nil {
		return 0, err
	}
	if err := r.Manifest.validate(); err != nil {
		r.Close()
		return 0, err
	}

	return h.Size, nil
}

// Each passes each part to read, the dump first, and then checks that the archive is at its end. A
// part's content fails at its end unless it matches the manifest. Each returns errors from read as
// they are.
func (r *Reader) Each(read func(p Part, content io.Reader) error) error {
	for p, err := range r.Manifest.parts() {
		if err != nil {
			return err
		}

		content, err := r.next(p)
		if err != nil {
			return r.asInvalid(err)
		}

		if err := read(p, content); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return err
		}
	}

	return r.asInvalid(r.checkEnd())
}

// next returns the next entry's content and fails unless the entry is p.
func (r *Reader) next(p Part) (io.Reader, error) {
	h, err := r.tar.Next()
	if err != nil {
		return nil, err
	}

	if h.Name != p.entryName() || h.Typeflag != tar.TypeReg || h.Size != p.Size {
		return nil, fmt.Errorf("got entry %q of %d bytes, want %q of %d", h.Name, h.Size, p.entryName(), p.Size)
	}

	return entryReader{Verify(r.tar, p.Digest), r}, nil
}

// entryReader reads an entry's content, with errors as from a [Reader].
type entryReader struct {
	content io.Reader
	r       *Reader
}

func (e entryReader) Read(b []byte) (int, error) {
	n, err := e.content.Read(b)
	if err != nil && err != io.EOF {
		err = e.r.asInvalid(err)
	}

	return n, err
}

// checkEnd fails unless the archive is at its end.
func (r *Reader) checkEnd() error {
	if _, err := r.tar.Next(); err == nil {
		return errors.New("more entries than in the manifest")
	} else if err != io.EOF {
		return err
	}

	n, err := io.Copy(io.Discard, io.LimitReader(r.plain, maxPadding+1))
	if err == nil && n > maxPadding {
		err = errors.New("bytes after the end")
	}

	return err
}
