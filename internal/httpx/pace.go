package httpx

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	readWindow = 30 * time.Second // of waiting for a client, in which at least
	readLeast  = 16 << 10         // bytes of a body arrive

	writeWindow = 60 * time.Second // in which a client takes
	writePiece  = 256 << 10        // bytes of an answer
)

// ErrTooSlow says that a body arrives at less than the least rate.
var ErrTooSlow = errors.New("httpx: the body arrives too slowly")

// PacedReader reads the body of a request for as long as it arrives at the least rate: 16 KiB in each 30 s of
// waiting for the client. What the server itself takes between two reads does not count. A slower client
// gets [ErrTooSlow], and its connection is closed behind the answer.
type PacedReader struct {
	body    io.ReadCloser
	control *http.ResponseController
	left    time.Duration // of the window
	arrived int           // bytes in the window
}

// NewPacedReader returns a reader of the body of r.
func NewPacedReader(w http.ResponseWriter, r *http.Request) *PacedReader {
	return &PacedReader{body: r.Body, control: http.NewResponseController(w), left: readWindow}
}

// Read reads what arrived. It moves the connection's deadlines as far as the window lasts.
func (p *PacedReader) Read(b []byte) (int, error) {
	begun := time.Now()
	if err := supported(p.control.SetReadDeadline(begun.Add(p.left)),
		p.control.SetWriteDeadline(begun.Add(writeWindow))); err != nil {
		return 0, err
	}

	n, err := p.body.Read(b)

	p.left -= time.Since(begun)
	if p.arrived += n; p.arrived >= readLeast {
		p.left, p.arrived = readWindow, 0
	}

	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errors.Join(ErrTooSlow, err)
	case err == io.EOF:
		// net/http goes on to read, to see when the client leaves. A deadline that passes would look like that.
		if err := supported(p.control.SetReadDeadline(time.Now().Add(writeWindow))); err != nil {
			return n, err
		}
	}

	return n, err
}

// Close closes the body.
func (p *PacedReader) Close() error { return p.body.Close() }

// PacedWriter writes an answer for as long as the client takes it at the least rate: 256 KiB in each 60 s.
type PacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// NewPacedWriter returns a writer to w.
func NewPacedWriter(w http.ResponseWriter) PacedWriter {
	return PacedWriter{w, http.NewResponseController(w)}
}

// Write writes a piece of the answer.
func (p PacedWriter) Write(b []byte) (int, error) {
	written := 0
	for {
		if err := supported(p.control.SetWriteDeadline(time.Now().Add(writeWindow))); err != nil {
			return written, err
		}

		n, err := p.ResponseWriter.Write(b[written:min(len(b), written+writePiece)])
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

// ReadFrom lets the kernel send a file, piece by piece.
func (p PacedWriter) ReadFrom(r io.Reader) (int64, error) {
	whole, ok := r.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{p}, r)
	}

	var written int64
	for whole.N > 0 {
		if err := supported(p.control.SetWriteDeadline(time.Now().Add(writeWindow))); err != nil {
			return written, err
		}

		size := min(whole.N, writePiece)
		n, err := io.Copy(p.ResponseWriter, &io.LimitedReader{R: whole.R, N: size})
		written, whole.N = written+n, whole.N-n
		if err != nil || n < size {
			return written, err
		}
	}

	return written, nil
}

// supported joins what setting deadlines came to. A ResponseWriter without a connection has none.
func supported(errs ...error) error {
	if err := errors.Join(errs...); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
