package archive

import (
	"errors"
	"io"
	"sync"

	"filippo.io/age"

	"github.com/socle-dev/socle/internal/fault"
)

// Encryption selects how an archive is encrypted: for an age recipient, with a passphrase, or, if
// zero, not at all.
type Encryption struct{ Recipient, Passphrase string }

const (
	workFactor    = 16 // scrypt's log2(N): 64 MiB and a fraction of a second
	maxWorkFactor = 18 // default in the age tool
)

// NewRecipient returns an age recipient, or nil without encryption. It fails with Unprocessable for
// an invalid recipient.
func NewRecipient(e Encryption, p *Passphrases) (age.Recipient, error) {
	switch {
	case e.Recipient != "":
		r, err := age.ParseX25519Recipient(e.Recipient)
		if err != nil {
			return nil, fault.OnField(fault.Unprocessable, "recipient", "invalid_format",
				"must be an age public key, such as age1…").WithCause(err)
		}

		return r, nil
	case e.Passphrase != "":
		r, err := age.NewScryptRecipient(e.Passphrase)
		if err != nil {
			return nil, err
		}

		r.SetWorkFactor(workFactor)
		return serialRecipient{r, &p.mu}, nil
	}

	return nil, nil
}

// Passphrases derives keys from passphrases, one at a time: each takes 64 MiB, and the wait also
// slows guessing. The zero value is ready to use.
type Passphrases struct{ mu sync.Mutex }

// serialRecipient derives one key from a passphrase at a time.
type serialRecipient struct {
	age.Recipient
	mu *sync.Mutex
}

func (r serialRecipient) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.Recipient.Wrap(fileKey)
}

// serialIdentity derives one key from a passphrase at a time.
type serialIdentity struct {
	age.Identity
	mu *sync.Mutex
}

func (i serialIdentity) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	i.mu.Lock()
	defer i.mu.Unlock()

	return i.Identity.Unwrap(stanzas)
}

const (
	agePrefix     = "age-encryption.org/"
	maxHeaderSize = 16 << 10 // bytes
)

// decrypt decrypts an archive. It reads r to the end of the age header.
func (c ReaderConfig) decrypt(r io.Reader) (io.Reader, error) {
	install, err := c.Key.identity()
	if err != nil {
		return nil, err
	}

	identities := []age.Identity{install}
	if c.Passphrase != "" {
		i, err := age.NewScryptIdentity(c.Passphrase)
		if err != nil {
			return nil, err
		}

		i.SetMaxWorkFactor(maxWorkFactor)
		identities = append(identities, serialIdentity{i, &c.Passphrases.mu})
	}

	header := &limitedReader{r: r, remaining: maxHeaderSize, err: Invalid(nil)}
	plain, err := decryptAge(header, identities...)
	header.remaining = -1 // no limit: the chunks that follow are authenticated one by one
	if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong && c.Passphrase != "" {
		return nil, errPassphrase
	} else if wrong {
		return nil, errNoKey
	}

	return plain, err
}
