package s3api

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
)

// maxLine is the maximum number of bytes in a line that frames chunks, maxTrailers the maximum
// number of lines after the last chunk.
const (
	maxLine     = 1024
	maxTrailers = 8
)

// nvme is the CRC-64/NVME polynomial.
const nvme = 0x9a6c9329ac4bc9b5

// sums maps headers to the checksums that clients send in them.
var sums = map[string]func() hash.Hash{
	"X-Amz-Checksum-Crc32":     func() hash.Hash { return crc32.NewIEEE() },
	"X-Amz-Checksum-Crc32c":    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
	"X-Amz-Checksum-Crc64nvme": func() hash.Hash { return crc64.New(crc64.MakeTable(nvme)) },
	"X-Amz-Checksum-Sha1":      sha1.New,
	"X-Amz-Checksum-Sha256":    sha256.New,
	"X-Amz-Checksum-Sha512":    sha512.New,
	"X-Amz-Checksum-Md5":       md5.New,
	"Content-Md5":              md5.New,
}

// sum is a body checksum under verification.
type sum struct {
	header string
	hash   hash.Hash
	want   []byte // nil until the trailer arrives
}

// body is a request's content. The last Read fails unless the bytes are the signed ones and match
// all checksums.
type body struct {
	length int64 // content length; -1 if unknown
	in     io.Reader
	read   int64
	sums   []sum
	sha    hash.Hash // hash over a body signed as a whole, else nil
	want   []byte
	err    error
}

// newBody returns a verified request's content. in reads r.Body.
func newBody(r *http.Request, s *signature, in io.Reader) (*body, error) {
	b := &body{length: r.ContentLength, in: in}
	if err := b.expect(r.Header); err != nil {
		return nil, err
	}

	switch s.payload {
	case signedChunks, signedTrailer, unsignedTrailer:
		return b, b.decodeChunks(r, s)
	}
	if r.Header.Get("X-Amz-Trailer") != "" {
		return nil, errTrailer
	}
	if s.payload == unsignedPayload {
		return b, nil
	}

	want, err := hex.DecodeString(s.payload)
	if err != nil || len(want) != sha256.Size {
		return nil, malformed("InvalidArgument", "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a streaming "+
			"payload, or a valid SHA-256")
	}

	b.sha, b.want = sha256.New(), want
	return b, nil
}

// expect notes the checksums in the headers.
func (b *body) expect(h http.Header) error {
	for header, create := range sums {
		text := h.Get(header)
		if text == "" {
			continue
		}

		want, err := base64.StdEncoding.DecodeString(text)
		sum := sum{header, create(), want}
		if err != nil || len(want) != sum.hash.Size() {
			return malformed("InvalidDigest", "The "+header+" you specified is not valid")
		}
		b.sums = append(b.sums, sum)
	}

	return nil
}

var errTrailer = malformed("InvalidRequest", "The value specified in the x-amz-trailer header is not supported")

func (b *body) decodeChunks(r *http.Request, s *signature) error {
	var err error
	if b.length, err = strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64); err != nil ||
		b.length < 0 {
		return fault.New(fault.Invalid, "You must provide the x-amz-decoded-content-length HTTP header").
			WithCode("MissingContentLength")
	}

	c := &chunks{in: bufio.NewReaderSize(b.in, 32<<10), body: b, signature: s, last: s.text,
		isSigned: s.payload != unsignedTrailer, trailer: s.payload != signedChunks}
	for name := range strings.SplitSeq(r.Header.Get("X-Amz-Trailer"), ",") {
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		create := sums[name]
		switch {
		case name == "":
			continue
		case create == nil || !c.trailer:
			return errTrailer
		}
		b.sums = append(b.sums, sum{header: name, hash: create()})
	}

	b.in = c
	return nil
}

// Read implements io.Reader.
func (b *body) Read(to []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}

	n, err := b.in.Read(to)
	b.read += int64(n)
	for _, s := range b.sums {
		s.hash.Write(to[:n])
	}
	if b.sha != nil {
		b.sha.Write(to[:n])
	}

	if err == io.EOF {
		if failure := b.verify(); failure != nil {
			err = failure
		}
	}

	b.err = err
	return n, err
}

// verify checks the content after the last byte.
func (b *body) verify() error {
	if b.length >= 0 && b.read != b.length {
		return malformed("IncompleteBody", "You did not provide the number of bytes specified by the content length")
	}
	if b.sha != nil && !bytes.Equal(b.sha.Sum(nil), b.want) {
		return malformed("XAmzContentSHA256Mismatch",
			"The provided 'x-amz-content-sha256' header does not match what was computed")
	}

	for _, s := range b.sums {
		if s.want == nil || !bytes.Equal(s.hash.Sum(nil), s.want) {
			return malformed("BadDigest", "The "+s.header+" you specified did not match what we received")
		}
	}

	return nil
}

// writeSums repeats the verified checksums in the response headers.
func (b *body) writeSums(h http.Header) {
	for _, s := range b.sums {
		if s.header != "Content-Md5" {
			h.Set(s.header, base64.StdEncoding.EncodeToString(s.want))
		}
	}
}

var errChunk = malformed("InvalidChunkSizeError", "The framing of a chunk is invalid")

// chunks decodes the transfer encoding aws-chunked and verifies the chunk signatures, each of which
// covers the previous one.
type chunks struct {
	in        *bufio.Reader
	body      *body
	signature *signature
	last      string // previous chunk's signature, or the request's
	current   string // this chunk's signature
	isSigned  bool
	trailer   bool
	remaining int64 // bytes left in the chunk
	inside    bool
	hash      hash.Hash
	done      bool
}

// Read implements io.Reader.
func (c *chunks) Read(to []byte) (int, error) {
	for c.remaining == 0 {
		if c.done {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
	}

	n, err := c.in.Read(to[:min(int64(len(to)), c.remaining)])
	c.remaining -= int64(n)
	c.hash.Write(to[:n])
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}

	return n, err
}

// next ends the chunk and begins the next. After the last chunk, which is empty, it reads the
// trailer.
func (c *chunks) next() error {
	if c.inside {
		if err := c.end(); err != nil {
			return err
		}
	}

	line, err := c.line()
	if err != nil {
		return err
	}

	size, extension, _ := strings.Cut(line, ";")
	if c.remaining, err = strconv.ParseInt(size, 16, 63); err != nil || c.remaining < 0 {
		return errChunk
	}

	c.current, _ = strings.CutPrefix(extension, "chunk-signature=")
	c.hash, c.inside = sha256.New(), true
	if c.remaining > 0 {
		return nil
	}

	if err := c.checkSignature(); err != nil {
		return err
	}

	c.done = true
	return c.readTrailer()
}

// end reads a chunk's line end and verifies the chunk's signature.
func (c *chunks) end() error {
	if line, err := c.line(); err != nil || line != "" {
		return errors.Join(err, errChunk)
	}
	return c.checkSignature()
}

func (c *chunks) checkSignature() error {
	if !c.isSigned {
		return nil
	}

	empty := sha256.Sum256(nil)
	text := strings.Join([]string{"AWS4-HMAC-SHA256-PAYLOAD", c.signature.time, c.signature.scope, c.last,
		hex.EncodeToString(empty[:]), hex.EncodeToString(c.hash.Sum(nil))}, "\n")

	return c.compare(text, c.current)
}

// compare verifies the next signature in the chain.
func (c *chunks) compare(text, got string) error {
	want := hex.EncodeToString(sign(c.signature.signing, text))
	if subtle.ConstantTimeCompare([]byte(want), []byte(got)) != 1 {
		return denied("SignatureDoesNotMatch", "The signature of a chunk does not match")
	}

	c.last = want
	return nil
}

// readTrailer reads the lines after the last chunk.
func (c *chunks) readTrailer() error {
	if !c.trailer {
		_, err := c.in.Peek(1) // the end, or a line end
		if err == io.EOF {
			return nil
		}
	}

	var lines strings.Builder
	signature := ""
	for range maxTrailers {
		line, err := c.line()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if line == "" {
			continue
		}

		name, value, _ := strings.Cut(line, ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if name == "x-amz-trailer-signature" {
			signature = value
			continue
		}

		lines.WriteString(name + ":" + value + "\n")
		if err := c.setSum(http.CanonicalHeaderKey(name), value); err != nil {
			return err
		}
	}

	if !c.isSigned || !c.trailer {
		return nil
	}

	sum := sha256.Sum256([]byte(lines.String()))
	return c.compare(strings.Join([]string{"AWS4-HMAC-SHA256-TRAILER", c.signature.time, c.signature.scope, c.last,
		hex.EncodeToString(sum[:])}, "\n"), signature)
}

func (c *chunks) setSum(header, text string) error {
	for i := range c.body.sums {
		s := &c.body.sums[i]
		if s.header != header || s.want != nil {
			continue
		}

		want, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(want) != s.hash.Size() {
			return malformed("InvalidDigest", "The "+header+" you specified is not valid")
		}
		s.want = want
	}

	return nil
}

// line reads a line without the line end.
func (c *chunks) line() (string, error) {
	var line []byte
	for {
		b, err := c.in.ReadByte()
		switch {
		case err == io.EOF && len(line) > 0:
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		case b == '\n':
			return string(bytes.TrimSuffix(line, []byte{'\r'})), nil
		case len(line) == maxLine:
			return "", errChunk
		}

		line = append(line, b)
	}
}
