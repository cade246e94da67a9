package httpx

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
)

// maxHeadLine bounds the buffered part of an incomplete line. It exceeds the server's limit for a
// whole head, which answers 431.
const maxHeadLine = 128 << 10

// errFraming makes net/http answer 400 and close the connection.
var errFraming = errors.New("httpx: ambiguous request framing")

// StrictListener returns l with connections that reject ambiguous request framing, against request
// smuggling. It rejects Transfer-Encoding in HTTP/1.0, Transfer-Encoding beside Content-Length,
// lines that end in a bare LF or contain a bare CR, and folded header lines (RFC 9112, sections
// 2.2, 5.2 and 6.1). A rejected request gets 400 and ends its connection. net/http accepts all
// these or repairs them silently before it calls a handler.
//
// The connection checks the bytes before net/http reads them. So a hijacked connection is another
// one, and a chunked request must be its last one, both of which [Wrap] ensures.
func StrictListener(l net.Listener) net.Listener { return strictListener{l} }

type strictListener struct{ net.Listener }

func (l strictListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}

	return &strictConn{Conn: c}, nil
}

// strictConn is a connection with checked requests. net/http reads from one goroutine at a time.
type strictConn struct {
	net.Conn
	framing framing
	err     error // error for all further reads
}

// Read reads up to the first rejected line.
func (c *strictConn) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}

	n, err := c.Conn.Read(p)

	size, bad := c.framing.scan(p[:n])
	if bad {
		c.err = errFraming
		if size == 0 {
			return 0, c.err
		}

		return size, nil
	}

	return n, err
}

// ReadFrom keeps sendfile available.
func (c *strictConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// CloseWrite lets net/http deliver a response to a client that is still sending.
func (c *strictConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// framing is a connection's parser state. The zero value is at the start of the first request.
type framing struct {
	line      []byte // incomplete line
	body      int64  // remaining bytes in a body; -1: ignore the rest of the connection
	inHead    bool   // request line was read
	http10    bool
	isChunked bool
	length    int64 // Content-Length; -1: none
}

// scan parses the next bytes. It returns the number of accepted bytes and whether the following
// byte is rejected.
func (f *framing) scan(p []byte) (size int, bad bool) {
	rest := p
	for len(rest) > 0 {
		if f.body < 0 {
			break
		}

		if f.body > 0 {
			n := min(f.body, int64(len(rest)))
			f.body, rest = f.body-n, rest[n:]
			continue
		}

		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			if len(f.line)+len(rest) > maxHeadLine {
				return len(p) - len(rest), true
			}

			f.line = append(f.line, rest...)
			break
		}

		line := rest[:end+1]
		if len(f.line) > 0 {
			line = append(f.line, line...)
		}

		if !f.parseLine(line) {
			return len(p) - len(rest), true
		}

		f.line, rest = nil, rest[end+1:]
	}

	return len(p), false
}

// parseLine parses one line in a head and reports whether it is valid.
func (f *framing) parseLine(line []byte) bool {
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || bytes.IndexByte(line, '\r') >= 0 {
		return false
	}

	switch {
	case !f.inHead && len(line) == 0: // net/http accepts it after a POST body and rejects it elsewhere
		return true
	case !f.inHead:
		*f = framing{inHead: true, http10: bytes.HasSuffix(line, []byte(" HTTP/1.0")), length: -1}
		return true
	case len(line) > 0:
		return f.parseHeader(line)
	}

	f.inHead = false

	switch {
	case f.isChunked:
		f.body = -1
	case f.length > 0:
		f.body = f.length
	}

	return !f.isChunked || (!f.http10 && f.length < 0)
}

// parseHeader parses one header line and reports whether it is valid.
func (f *framing) parseHeader(line []byte) bool {
	if line[0] == ' ' || line[0] == '\t' {
		return false
	}

	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case len(name) == len("Content-Length") && strings.EqualFold(string(name), "Content-Length"):
		n, err := strconv.ParseUint(strings.Trim(string(value), " \t"), 10, 63)
		if err != nil || (f.length >= 0 && f.length != int64(n)) {
			return false
		}

		f.length = int64(n)
	case len(name) == len("Transfer-Encoding") && strings.EqualFold(string(name), "Transfer-Encoding"):
		f.isChunked = true
	}

	return true
}
