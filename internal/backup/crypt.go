package backup

import (
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"socle/internal/token"
)

// key encrypts what is kept of backups, and opens it again: a recipient and an identity of the age format that wrap the
// key of a file under one of the instance's own. Whatever was changed, cut off or encrypted under another key does not open.
type key []byte

const stanza = "socle"

// Wrap seals the key of a file.
func (k key) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	sealed, err := token.Seal(k, fileKey)
	if err != nil {
		return nil, err
	}

	return []*age.Stanza{{Type: stanza, Body: sealed}}, nil
}

// Unwrap opens the key of a file that Wrap sealed.
func (k key) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, s := range stanzas {
		if s.Type == stanza {
			fileKey, err := token.Open(k, s.Body)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", age.ErrIncorrectIdentity, err)
			}

			return fileKey, nil
		}
	}

	return nil, age.ErrIncorrectIdentity
}

// encrypted returns what r holds, encrypted while it is read. The caller closes it, which ends the encrypting.
func (k key) encrypted(r io.Reader) *encrypting {
	out, in := io.Pipe()
	e := &encrypting{out, make(chan struct{})}
	go func() {
		defer close(e.done)

		w, err := age.Encrypt(in, k)
		if err == nil {
			_, err = io.Copy(w, r)
			if err == nil {
				err = w.Close()
			}
		}

		in.CloseWithError(err)
	}()

	return e
}

// encrypting is what is read while it is encrypted. When done is closed, nobody reads any more what it is made of.
type encrypting struct {
	*io.PipeReader
	done chan struct{}
}

// chunk is how many bytes age encrypts at a time, and tag what each chunk grows by.
const (
	chunk = 64 << 10
	tag   = 16
)

// sizeOf returns how many bytes n bytes are when they are encrypted.
func (k key) sizeOf(n int64) (int64, error) {
	empty := k.encrypted(eof{})
	defer empty.Close()

	size, err := io.Copy(io.Discard, empty) // a header, and the one chunk that there always is
	return size + n + max(0, (n+chunk-1)/chunk-1)*tag, err
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// errDamaged says that what is kept of a backup is not what was kept.
var errDamaged = errors.New("what is kept of the backup is damaged")

// opened returns what from holds encrypted for one of some. That it can't be opened is damage, there or while it is read, unless it is from that failed.
func opened(from *bounded, by ...age.Identity) (io.Reader, error) {
	plain, err := age.Decrypt(from, by...)
	return damaged{plain, from}, from.damage(err)
}

// damage says that an error is that of what was read, unless reading it has failed.
func (b *bounded) damage(err error) error {
	if err == nil || err == io.EOF || b.failed != nil {
		return err
	}
	return errors.Join(errDamaged, err)
}

// damaged wraps the failures of reading what is encrypted.
type damaged struct {
	r    io.Reader
	from *bounded
}

func (d damaged) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	return n, d.from.damage(err)
}

// Decrypt returns what was encrypted under the key of an instance's backups, see [tenant.Registry.BackupKey].
func Decrypt(of []byte, r io.Reader) (io.Reader, error) { return key(of).decrypted(r) }

// decrypted returns what was encrypted. Reading it fails with errDamaged where something was changed or cut off.
func (k key) decrypted(r io.Reader) (io.Reader, error) {
	return opened(&bounded{r: r, left: -1}, k)
}
