package picture

import (
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"io"
)

// decodePNG decodes a picture whose chunks may have wrong checksums, as browsers do. The pixels
// have a separate checksum.
func decodePNG(r io.Reader) (image.Image, error) { return png.Decode(&checksumWriter{r: r, skip: 8}) }

func decodePNGConfig(r io.Reader) (image.Config, error) {
	return png.DecodeConfig(&checksumWriter{r: r, skip: 8})
}

// checksumWriter reads a PNG and replaces the chunk checksums by correct ones.
type checksumWriter struct {
	r    io.Reader
	skip int64 // bytes before the first chunk

	header    [8]byte // length and kind of the current chunk, as far as read
	read      int     // bytes read from the header, or from the checksum after the data
	data      int64   // chunk bytes that follow
	sum       uint32
	inTrailer bool
}

// Read implements [io.Reader].
func (c *checksumWriter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	for part := b[:n]; len(part) > 0; {
		part = part[c.pass(part):]
	}

	return n, err
}

// pass processes a prefix of b and returns the prefix's length.
func (c *checksumWriter) pass(b []byte) int {
	switch {
	case c.skip > 0:
		n := min(int64(len(b)), c.skip)
		c.skip -= n
		return int(n)
	case c.data > 0:
		n := min(int64(len(b)), c.data)
		c.sum = crc32.Update(c.sum, crc32.IEEETable, b[:n])
		if c.data -= n; c.data == 0 {
			c.inTrailer = true
		}
		return int(n)
	case c.inTrailer:
		b[0] = byte(c.sum >> (24 - 8*c.read))
		if c.read++; c.read == 4 {
			c.read, c.inTrailer = 0, false
		}
		return 1
	}

	n := copy(c.header[c.read:], b)
	if c.read += n; c.read == len(c.header) {
		c.read, c.data = 0, int64(binary.BigEndian.Uint32(c.header[:]))
		c.sum = crc32.ChecksumIEEE(c.header[4:])
		c.inTrailer = c.data == 0
	}

	return n
}
