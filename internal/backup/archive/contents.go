package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Contents is the list of a backup's distinct file contents. There can be millions, so it is stored
// in an unlinked temporary file, which disappears with the process at the latest. A nil Contents is
// empty. Only one goroutine may add; afterwards any number may read concurrently. The goroutine
// that fills it closes it.
type Contents struct {
	file   *os.File
	out    *bufio.Writer
	n      int64
	budget *limitedReader // for the manifest's bytes beside the contents; nil: unlimited
}

// Content is one content, which many files can share.
type Content struct {
	Digest
	Blob uuid.UUID // holds it in the project's storage; not in a manifest
}

// A record is a size, a checksum and a blob UUID.
const (
	recordSize = 8 + sha256.Size + 16
	sumBatch   = 5000 // sums per batch
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

// Add appends a content. It fails with ErrDamaged unless the checksum is canonical and the size is
// not negative.
func (c *Contents) Add(with Content) error {
	sum, err := with.sum()
	if err != nil {
		return err
	}

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

	copy(record[8:], sum)
	copy(record[8+sha256.Size:], with.Blob[:])
	c.n++
	_, err = c.out.Write(record[:])
	return err
}

// isLocal reports whether an error comes from a local file, such as a [Contents] file, rather than
// from the archive.
func isLocal(err error) bool {
	_, local := errors.AsType[*fs.PathError](err)
	return local
}

// All returns the contents in the order in which they were added.
func (c *Contents) All() iter.Seq2[Content, error] {
	return func(yield func(Content, error) bool) {
		if c.Len() == 0 {
			return
		}

		if err := c.out.Flush(); err != nil {
			yield(Content{}, err)
			return
		}

		in := bufio.NewReaderSize(io.NewSectionReader(c.file, 0, c.n*recordSize), chunk)
		var record [recordSize]byte
		for range c.n {
			if _, err := io.ReadFull(in, record[:]); err != nil {
				yield(Content{}, err)
				return
			}

			size := int64(binary.BigEndian.Uint64(record[:]))
			if !yield(
				Content{NewDigest(size, record[8:8+sha256.Size]), uuid.UUID(record[8+sha256.Size:])}, nil,
			) {
				return
			}
		}
	}
}

// Sums returns the contents' SHA-256 sums in batches.
func (c *Contents) Sums() iter.Seq2[[][]byte, error] {
	return func(yield func([][]byte, error) bool) {
		batch := make([][]byte, 0, sumBatch)
		for f, err := range c.All() {
			if err != nil {
				yield(nil, err)
				return
			}

			sum, _ := f.sum() // Add has validated it
			if batch = append(batch, sum); len(batch) == sumBatch {
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

	for f, err := range c.All() {
		if err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, f.Digest); err != nil {
			return err
		}
	}

	return enc.WriteToken(jsontext.EndArray)
}

// UnmarshalJSONFrom reads an array, which may be null.
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
		start := dec.InputOffset()
		var f Digest
		if err := json.UnmarshalDecode(dec, &f); err != nil {
			return err
		}
		if err := c.Add(Content{Digest: f}); err != nil {
			return err
		}

		if c.budget != nil { // contents do not count toward the budget
			c.budget.remaining += dec.InputOffset() - start
		}
	}

	_, err := dec.ReadToken()
	return err
}
