package tus

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"io"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
)

// ChecksumAlgorithms lists the [Checksum] algorithms, separated by commas. SHA-1 serves to detect
// transmission errors; tampering is prevented by the client's token.
const ChecksumAlgorithms = "sha1,sha256"

// Checksum is the checksum that a client sends with a part.
type Checksum struct {
	hash hash.Hash
	want []byte
}

// ParseChecksum parses an Upload-Checksum header: an algorithm, a space and the checksum in base64.
// It returns nil for "" and fails with Invalid on Upload-Checksum.
func ParseChecksum(text string) (*Checksum, error) {
	if text == "" {
		return nil, nil
	}

	c := &Checksum{}
	algorithm, sum, _ := strings.Cut(text, " ")
	switch algorithm {
	case "sha1":
		c.hash = sha1.New()
	case "sha256":
		c.hash = sha256.New()
	}

	var err error
	if c.want, err = base64.StdEncoding.DecodeString(sum); err != nil || c.hash == nil || len(c.want) != c.hash.Size() {
		return nil, fault.OnField(fault.Invalid, "Upload-Checksum", "invalid_format",
			"must be an algorithm (%s), a space and the checksum in base64", ChecksumAlgorithms)
	}

	return c, nil
}

// Verify wraps content in a reader that fails with Mismatch at the end unless the checksum matches.
func (c *Checksum) Verify(content io.Reader) io.Reader { return &checked{content, c} }

type checked struct {
	content io.Reader
	*Checksum
}

// Read implements io.Reader.
func (c *checked) Read(to []byte) (int, error) {
	n, err := c.content.Read(to)
	c.hash.Write(to[:n])

	if err == io.EOF && !bytes.Equal(c.hash.Sum(nil), c.want) {
		err = fault.New(fault.Mismatch, "the content does not match the checksum")
	}

	return n, err
}
