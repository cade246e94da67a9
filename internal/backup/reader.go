package backup

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/socle-dev/socle/internal/fault"
)

const maxPadding = 64 << 10 // bytes after the end of the tar

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
