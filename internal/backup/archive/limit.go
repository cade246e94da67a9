package archive

import (
	"errors"
	"io"
)

// limitedReader fails with err when no bytes remain. It keeps read errors apart from errors in the
// data.
type limitedReader struct {
	r         io.Reader
	remaining int64 // bytes; -1: unlimited
	err       error
	readErr   error // other than io.EOF
}

func (b *limitedReader) Read(p []byte) (int, error) {
	if b.remaining == 0 {
		b.readErr = b.err
		return 0, b.err
	}

	if b.remaining > 0 {
		p = p[:min(int64(len(p)), b.remaining)]
	}

	n, err := b.r.Read(p)
	if b.remaining > 0 {
		b.remaining -= int64(n)
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
