package backup

import (
	"errors"
	"io"
	"strings"
	"sync"

	"filippo.io/age"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/token"
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

// identity returns the key pair of this install, derived from its backup key.
func (s *Service) identity() (*age.X25519Identity, error) {
	return age.ParseX25519Identity(bech32("AGE-SECRET-KEY-", token.Derive(s.key(), "recipient of backups")))
}

// Recipient returns the public key of this install: only this install can import a backup encrypted
// for it.
func (s *Service) Recipient() (string, error) {
	own, err := s.identity()
	if err != nil {
		return "", err
	}

	return own.Recipient().String(), nil
}

// Errors of opening an uploaded archive.
var (
	errPassphrase = fault.OnField(fault.Unprocessable, "X-Passphrase", "wrong_passphrase", "does not open the backup")
	errNoKey      = fault.OnField(fault.Unprocessable, "X-Passphrase", "required",
		"is required: the backup is not encrypted for this install")
	errArchive = fault.New(fault.Unprocessable, "the file is damaged, truncated, or not a downloaded backup").
			WithCode("damaged_backup")
)

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

// limitedReader fails with err after left bytes; -1 is unlimited.
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

const bech32Letters = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"

// bech32 encodes bytes as in BIP 173, in upper case, as the age format does for secret keys.
func bech32(prefix string, data []byte) string {
	var values []byte
	bits, have := 0, 0
	for _, b := range data {
		bits, have = bits<<8|int(b), have+8
		for ; have >= 5; have -= 5 {
			values = append(values, byte(bits>>(have-5)&31))
		}

		bits &= 1<<have - 1
	}

	if have > 0 {
		values = append(values, byte(bits<<(5-have)&31))
	}

	var text []byte // input of the checksum
	lower := strings.ToLower(prefix)
	for i := range len(lower) {
		text = append(text, lower[i]>>5)
	}

	text = append(text, 0)
	for i := range len(lower) {
		text = append(text, lower[i]&31)
	}

	text = append(append(text, values...), 0, 0, 0, 0, 0, 0)
	sum := uint32(1)
	for _, v := range text {
		top := sum >> 25
		sum = sum&0x1ffffff<<5 ^ uint32(v)
		for i, g := range []uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				sum ^= g
			}
		}
	}

	sum ^= 1
	for i := range 6 {
		values = append(values, byte(sum>>(5*(5-i))&31))
	}

	var out strings.Builder
	out.WriteString(prefix + "1")

	for _, v := range values {
		out.WriteByte(bech32Letters[v])
	}

	return out.String()
}
