package backup

import (
	"errors"
	"io"
	"sync"

	"filippo.io/age"

	"github.com/socle-dev/socle/internal/fault"
)

// ExportEncryption selects how an exported backup is encrypted: for an age recipient, with a
// passphrase, or, if zero, not at all.
type ExportEncryption struct{ Recipient, Passphrase string }

const (
	workFactor    = 16 // scrypt's log2(N): 64 MiB and a fraction of a second
	maxWorkFactor = 18 // the default of the age tool
)

// recipient returns the age recipient, or nil without encryption.
func (c ExportEncryption) recipient(mu *sync.Mutex) (age.Recipient, error) {
	switch {
	case c.Recipient != "":
		r, err := age.ParseX25519Recipient(c.Recipient)
		if err != nil {
			return nil, fault.OnField(fault.Unprocessable, "recipient", "invalid_format",
				"must be an age public key, such as age1…").WithCause(err)
		}

		return r, nil
	case c.Passphrase != "":
		r, err := age.NewScryptRecipient(c.Passphrase)
		if err != nil {
			return nil, err
		}

		r.SetWorkFactor(workFactor)
		return serialRecipient{r, mu}, nil
	}

	return nil, nil
}

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

// decryptArchive decrypts an archive. It reads r to the end of the age header.
func (s *Service) decryptArchive(r io.Reader, passphrase string) (io.Reader, error) {
	own, err := s.identity()
	if err != nil {
		return nil, err
	}

	identities := []age.Identity{own}
	if passphrase != "" {
		i, err := age.NewScryptIdentity(passphrase)
		if err != nil {
			return nil, err
		}

		i.SetMaxWorkFactor(maxWorkFactor)
		identities = append(identities, serialIdentity{i, &s.passphrases})
	}

	header := &limitedReader{r: r, left: maxHeaderSize, err: errArchive}
	plain, err := decryptAge(header, identities...)
	header.left = -1 // no limit: the chunks that follow are authenticated one by one
	if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong && passphrase != "" {
		return nil, errPassphrase
	} else if wrong {
		return nil, errNoKey
	}

	return plain, err
}
