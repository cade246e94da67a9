package backup

import (
	"fmt"
	"io"

	"filippo.io/age"

	"github.com/socle-dev/socle/internal/token"
)

// key encrypts and decrypts stored backups. It is an age recipient and identity that wraps file
// keys with a key of the install. Data that was changed, truncated or encrypted with another key
// does not decrypt.
type key []byte

const stanza = "socle"

// Wrap encrypts a file key.
func (k key) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	sealed, err := token.Seal(k, fileKey)
	if err != nil {
		return nil, err
	}

	return []*age.Stanza{{Type: stanza, Body: sealed}}, nil
}

// Unwrap decrypts a file key encrypted by Wrap.
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

// encrypt returns a reader of the encrypted content of r. The caller closes it, which stops the
// encryption.
func (k key) encrypt(r io.Reader) *encryptingReader {
	out, in := io.Pipe()
	e := &encryptingReader{out, make(chan struct{})}
	go func() {
		defer close(e.done)

		in.CloseWithError(k.encryptTo(in, r))
	}()

	return e
}

func (k key) encryptTo(w io.Writer, r io.Reader) error {
	sealed, err := age.Encrypt(w, k)
	if err != nil {
		return err
	}

	if _, err := io.Copy(sealed, r); err != nil {
		return err
	}

	return sealed.Close()
}

// encryptingReader is a reader of data being encrypted. done is closed when the source is no longer
// read.
type encryptingReader struct {
	*io.PipeReader
	done chan struct{}
}

// chunk is the number of bytes per age chunk, tag the overhead of a chunk.
const (
	chunk = 64 << 10
	tag   = 16
)

// sizeOf returns the encrypted size of n bytes.
func (k key) sizeOf(n int64) (int64, error) {
	empty := k.encrypt(eof{})
	defer empty.Close()

	size, err := io.Copy(io.Discard, empty) // header and one chunk: even empty data has one
	return size + n + max(0, (n+chunk-1)/chunk-1)*tag, err
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// decryptAge decrypts from with one of the identities. Errors are damage, when opening and when
// reading, unless reading from itself failed.
func decryptAge(from *limitedReader, by ...age.Identity) (io.Reader, error) {
	plain, err := age.Decrypt(from, by...)
	return decryptingReader{plain, from}, from.asDamage(err)
}

// decryptingReader marks read errors of encrypted data as damage.
type decryptingReader struct {
	r    io.Reader
	from *limitedReader
}

func (d decryptingReader) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	return n, d.from.asDamage(err)
}

// Decrypt decrypts data that was encrypted with an install's backup key, see
// [projectdb.Registry.BackupKey].
func Decrypt(of []byte, r io.Reader) (io.Reader, error) { return key(of).decrypt(r) }

// decrypt decrypts r. Reading fails with errDamaged where data was changed or truncated.
func (k key) decrypt(r io.Reader) (io.Reader, error) {
	return decryptAge(&limitedReader{r: r, left: -1}, k)
}
