package httpx

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	readWindow   = 30 * time.Second // client's time per minReadBytes
	minReadBytes = 16 << 10         // body bytes per readWindow

	writeWindow    = 60 * time.Second // per writeChunkSize
	writeChunkSize = 256 << 10        // response bytes per writeWindow
)

// ErrTooSlow is the failure for a body that arrives below the minimum rate.
var ErrTooSlow = errors.New("httpx: the body arrives too slowly")

// PacedReader reads a request body that must arrive at the minimum rate: 16 KiB per 30 s of waiting
// for the client. Time that the server spends between reads does not count. A slower body fails
// with [ErrTooSlow], and its connection is closed after the response.
type PacedReader struct {
	body      io.ReadCloser
	control   *http.ResponseController
	remaining time.Duration // time left in the window
	size      int           // bytes in the window
}

// NewPacedReader returns a reader for r's body.
func NewPacedReader(w http.ResponseWriter, r *http.Request) *PacedReader {
	return &PacedReader{body: r.Body, control: http.NewResponseController(w), remaining: readWindow}
}

// Read reads the next bytes. It sets the connection's deadlines to the window's end.
func (p *PacedReader) Read(b []byte) (int, error) {
	start := time.Now()
	if err := ignoreUnsupported(p.control.SetReadDeadline(start.Add(p.remaining)),
		p.control.SetWriteDeadline(start.Add(writeWindow))); err != nil {
		return 0, err
	}

	n, err := p.body.Read(b)

	p.remaining -= time.Since(start)
	if p.size += n; p.size >= minReadBytes {
		p.remaining, p.size = readWindow, 0
	}

	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errors.Join(ErrTooSlow, err)
	case err == io.EOF:
		// net/http keeps reading to detect a disconnect. A passed deadline would look like one.
		if err := ignoreUnsupported(p.control.SetReadDeadline(time.Now().Add(writeWindow))); err != nil {
			return n, err
		}
	}

	return n, err
}

// Close closes the body.
func (p *PacedReader) Close() error { return p.body.Close() }

// PacedWriter writes a response to a client that reads at the minimum rate: 256 KiB per 60 s.
type PacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// NewPacedWriter returns a writer to w.
func NewPacedWriter(w http.ResponseWriter) PacedWriter {
	return PacedWriter{w, http.NewResponseController(w)}
}

// Write writes b in pieces, each with its own deadline.
func (p PacedWriter) Write(b []byte) (int, error) {
	total := 0
	for {
		if err := ignoreUnsupported(p.control.SetWriteDeadline(time.Now().Add(writeWindow))); err != nil {
			return total, err
		}

		n, err := p.ResponseWriter.Write(b[total:min(len(b), total+writeChunkSize)])
		total += n
		if err != nil || total == len(b) {
			return total, err
		}
	}
}

// ReadFrom writes a limited reader in pieces and keeps sendfile available.
func (p PacedWriter) ReadFrom(r io.Reader) (int64, error) {
	lr, ok := r.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{p}, r)
	}

	var written int64
	for lr.N > 0 {
		if err := ignoreUnsupported(p.control.SetWriteDeadline(time.Now().Add(writeWindow))); err != nil {
			return written, err
		}

		size := min(lr.N, writeChunkSize)
		n, err := io.Copy(p.ResponseWriter, &io.LimitedReader{R: lr.R, N: size})
		written, lr.N = written+n, lr.N-n
		if err != nil || n < size {
			return written, err
		}
	}

	return written, nil
}

// ignoreUnsupported joins the errors from setting deadlines. It ignores http.ErrNotSupported, for a
// ResponseWriter without a connection.
func ignoreUnsupported(errs ...error) error {
	if err := errors.Join(errs...); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
