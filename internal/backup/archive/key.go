package archive

import (
	"fmt"
	"io"

	"filippo.io/age"

	"github.com/socle-dev/socle/internal/token"
)

// Key is an install's backup key: 32 bytes, which encrypt and decrypt stored parts. It is an age
// recipient and identity that wraps file keys. Data that was changed, truncated or encrypted with
// another key does not decrypt.
type Key []byte

const stanza = "socle"

// Wrap encrypts a file key.
func (k Key) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	body, err := token.Seal(k, fileKey)
	if err != nil {
		return nil, err
	}

	return []*age.Stanza{{Type: stanza, Body: body}}, nil
}

// Unwrap decrypts a file key encrypted by Wrap.
func (k Key) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
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

// Encrypt returns a reader that encrypts r. The caller closes it, which stops the encryption.
func (k Key) Encrypt(r io.Reader) *Encrypter {
	out, in := io.Pipe()
	e := &Encrypter{out, make(chan struct{})}
	go func() {
		defer close(e.done)

		in.CloseWithError(k.encryptTo(in, r))
	}()

	return e
}

func (k Key) encryptTo(w io.Writer, r io.Reader) error {
	out, err := age.Encrypt(w, k)
	if err != nil {
		return err
	}

	if _, err := io.Copy(out, r); err != nil {
		return err
	}

	return out.Close()
}

// Encrypter reads encrypted data.
type Encrypter struct {
	*io.PipeReader
	done chan struct{} // closed when the source is no longer read
}

// Wait returns when nothing reads the source any more: at its end, or after Close when the read in
// flight has returned.
func (e *Encrypter) Wait() { <-e.done }

// chunk and tag are the bytes and the overhead per age chunk.
const (
	chunk = 64 << 10
	tag   = 16
)

// EncryptedSize returns the encrypted size of n bytes.
func (k Key) EncryptedSize(n int64) (int64, error) {
	empty := k.Encrypt(eof{})
	defer empty.Close()

	size, err := io.Copy(io.Discard, empty) // header and one chunk: even empty data has one
	return size + n + max(0, (n+chunk-1)/chunk-1)*tag, err
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// decryptAge decrypts from with one of the identities. Errors are damage, on opening and on
// reading, unless reading from itself failed.
func decryptAge(from *limitedReader, by ...age.Identity) (io.Reader, error) {
	plain, err := age.Decrypt(from, by...)
	return decryptingReader{plain, from}, from.asDamage(err)
}

// decryptingReader marks decryption errors as damage.
type decryptingReader struct {
	r    io.Reader
	from *limitedReader
}

func (d decryptingReader) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	return n, d.from.asDamage(err)
}

// Decrypt returns a reader that decrypts r. It fails with ErrDamaged, on opening and on reading, if
// the data was changed, truncated or encrypted with another key. It returns r's read errors as they
// are.
func (k Key) Decrypt(r io.Reader) (io.Reader, error) {
	return decryptAge(&limitedReader{r: r, remaining: -1}, k)
}

// Recipient returns the install's public key in the age format. Only this install can read an
// archive encrypted for it.
func (k Key) Recipient() (string, error) {
	pair, err := k.identity()
	if err != nil {
		return "", err
	}

	return pair.Recipient().String(), nil
}

// identity returns the install's key pair, derived from k.
func (k Key) identity() (*age.X25519Identity, error) {
	return age.ParseX25519Identity(bech32("AGE-SECRET-KEY-", token.Derive(k, "recipient of backups")))
}
