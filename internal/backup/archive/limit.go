package archive

import (
	"errors"
	"io"
)

// limitedReader fails with err after left bytes; -1 is unlimited. It keeps errors of the source
// apart from errors in its contents.
type limitedReader struct {
	r       io.Reader
	left    int64
	err     error
	readErr error // the read error, other than io.EOF
}

func (b *limitedReader) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.readErr = b.err
		return 0, b.err
	}

	if b.left > 0 {
		p = p[:min(int64(len(p)), b.left)]
	}

	n, err := b.r.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	if err != nil && err != io.EOF {
		b.readErr = err
	}

	return n, err
}

// asDamage marks an error as damage unless reading the source failed.
func (b *limitedReader) asDamage(err error) error {
	if err == nil || err == io.EOF || b.readErr != nil {
		return err
	}
	return errors.Join(ErrDamaged, err)
}
