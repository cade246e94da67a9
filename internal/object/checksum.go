package object

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"io"
	"strings"

	"socle/internal/fault"
)

// ChecksumAlgorithms are those that a [Checksum] may be of. SHA-1 finds what went wrong on the way; against forgers there is the client's token.
const ChecksumAlgorithms = "sha1,sha256"

// Checksum is what a client says of the bytes that it sends.
type Checksum struct {
	hash hash.Hash
	want []byte
}

// ParseChecksum reads an algorithm and a sum in base64 with a space between, as the tus protocol writes it; "" is none.
// It fails with Invalid on Upload-Checksum.
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
			"must be one of %s and the sum in base64", ChecksumAlgorithms)
	}

	return c, nil
}

// check returns content that fails with Mismatch at its end unless it is what the checksum says.
func (c *Checksum) check(content io.Reader) io.Reader { return &checked{content, c} }

type checked struct {
	content io.Reader
	*Checksum
}

// Read reads the content.
func (c *checked) Read(to []byte) (int, error) {
	n, err := c.content.Read(to)
	c.hash.Write(to[:n])

	if err == io.EOF && !bytes.Equal(c.hash.Sum(nil), c.want) {
		err = fault.New(fault.Mismatch, "the bytes are not those of the checksum")
	}

	return n, err
}
