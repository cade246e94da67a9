package backup

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Contents is the list of distinct contents of a backup's files. There can be millions, so it is
// stored in an unlinked temporary file, which disappears with the process at the latest. A nil
// Contents is empty. Only one goroutine may add; afterwards any number may read concurrently.
type Contents struct {
	file   *os.File
	out    *bufio.Writer
	n      int64
	budget *limitedReader // of the text being parsed, beside the contents; nil: unlimited
}

// content is the content of one or more files, and a blob that holds it in the project's storage.
type content struct {
	Digest
	Blob uuid.UUID
}

// A record is a size, a checksum and a blob UUID.
const (
	sumSize      = 32
	recordSize   = 8 + sumSize + 16
	contentBatch = 5000 // contents per batch
)

// Len returns the number of contents.
func (c *Contents) Len() int64 {
	if c == nil {
		return 0
	}
	return c.n
}

// Close releases the temporary file.
func (c *Contents) Close() {
	if c != nil && c.file != nil {
		_ = c.file.Close()
	}
}

// add appends a content. It fails unless the checksum is canonical and the size is not negative.
func (c *Contents) add(with content) error {
	if c.file == nil {
		f, err := os.CreateTemp("", "socle-")
		if err != nil {
			return err
		}

		if err := os.Remove(f.Name()); err != nil {
			return errors.Join(err, f.Close())
		}

		c.file, c.out = f, bufio.NewWriterSize(f, chunk)
	}

	var record [recordSize]byte
	binary.BigEndian.PutUint64(record[:], uint64(with.Size))

	sum, err := hex.DecodeString(with.SHA256)
	if err != nil || len(sum) != sumSize || hex.EncodeToString(sum) != with.SHA256 || with.Size < 0 {
		return fmt.Errorf("%w: invalid content %v", errDamaged, with.Digest)
	}

	copy(record[8:], sum)
	copy(record[8+sumSize:], with.Blob[:])
	c.n++
	_, err = c.out.Write(record[:])
	return err
}

// all returns the contents in insertion order.
func (c *Contents) all() iter.Seq2[content, error] {
	return func(yield func(content, error) bool) {
		if c.Len() == 0 {
			return
		}

		if err := c.out.Flush(); err != nil {
			yield(content{}, err)
			return
		}

		in := bufio.NewReaderSize(io.NewSectionReader(c.file, 0, c.n*recordSize), chunk)
		var record [recordSize]byte
		for range c.n {
			if _, err := io.ReadFull(in, record[:]); err != nil {
				yield(content{}, err)
				return
			}

			if !yield(
				content{
					Digest{int64(binary.BigEndian.Uint64(record[:])), hex.EncodeToString(record[8 : 8+sumSize])},
					uuid.UUID(record[8+sumSize:]),
				}, nil,
			) {
				return
			}
		}
	}
}

// followedBy returns the contents followed by last.
func (c *Contents) followedBy(last Digest) iter.Seq2[Digest, error] {
	return func(yield func(Digest, error) bool) {
		for f, err := range c.all() {
			if !yield(f.Digest, err) {
				return
			}
		}

		yield(last, nil)
	}
}

// sums returns the checksums of the contents in batches.
func (c *Contents) sums() iter.Seq2[[][]byte, error] {
	return func(yield func([][]byte, error) bool) {
		batch := make([][]byte, 0, contentBatch)
		for f, err := range c.all() {
			if err != nil {
				yield(nil, err)
				return
			}

			sum, _ := hex.DecodeString(f.SHA256) // add has validated it
			if batch = append(batch, sum); len(batch) == contentBatch {
				if !yield(slices.Clone(batch), nil) {
					return
				}
				batch = batch[:0]
			}
		}

		if len(batch) > 0 {
			yield(batch, nil)
		}
	}
}

// MarshalJSONTo writes the contents as an array.
func (c *Contents) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}

	for f, err := range c.all() {
		if err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, f.Digest); err != nil {
			return err
		}
	}

	return enc.WriteToken(jsontext.EndArray)
}

// UnmarshalJSONFrom reads an array of contents.
func (c *Contents) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if kind := dec.PeekKind(); kind == 'n' {
		return dec.SkipValue()
	} else if kind != '[' {
		return errors.New("files is not an array")
	}

	if _, err := dec.ReadToken(); err != nil {
		return err
	}

	for dec.PeekKind() != ']' {
		before := dec.InputOffset()
		var f Digest
		if err := json.UnmarshalDecode(dec, &f); err != nil {
			return err
		}
		if err := c.add(content{Digest: f}); err != nil {
			return err
		}

		if c.budget != nil { // contents do not count toward the budget
			c.budget.left += dec.InputOffset() - before
		}
	}

	_, err := dec.ReadToken()
	return err
}
